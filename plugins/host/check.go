package host

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Check starts the plugin as the supervisor would, has it describe itself and
// judge its config table, and ends it. Nothing is promoted. The error is the
// one that status would show.
func Check(ctx context.Context, c Config) error {
	if err := c.complete(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "sbd")
	if err != nil {
		return fmt.Errorf("check plugin %s: %w", c.Name, err)
	}
	defer os.RemoveAll(dir)
	if err := prepareSockets(dir); err != nil {
		return fmt.Errorf("check plugin %s: %w", c.Name, err)
	}
	i, err := launch(ctx, &c, "", dir, func(string) {}, true)
	if err != nil {
		var own *HookError
		if errors.As(err, &own) { // what the plugin says of its config, without the way there
			return fmt.Errorf("check plugin %s: %s", c.Name, own.Msg)
		}
		return fmt.Errorf("check plugin %s: %w", c.Name, err)
	}
	// Whether it ends nicely is not what was asked.
	_ = i.shutdown(ctx, c.Timeout)
	return nil
}
