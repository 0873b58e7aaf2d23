package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/standbyd/standbyd/supervisor"
)

// readEvents reads server-sent events until the stream ends (io.EOF) or each
// returns an error. The id and the type are in the data too, so only data
// lines matter.
func readEvents(body io.Reader, each func(supervisor.Event) error) error {
	lines := bufio.NewReaderSize(body, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return err
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			continue
		}
		var e supervisor.Event
		if err := json.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("read an event: %w", err)
		}
		if err := each(e); err != nil {
			return err
		}
	}
}
