//go:build linux

package logreader

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/standbyd/standbyd/internal/capture"
)

// Operations. An answer has the operation and the id of its question.
const (
	opHello    = "hello"    // -> Protocol, Program, Dropped
	opBind     = "bind"     // listen at File
	opTrack    = "track"    // keep the log Name in File by Options; read the FIFOs that come with it
	opUntrack  = "untrack"  // finish the log Name -> when it is done
	opNote     = "note"     // add Line to the log Name
	opWords    = "words"    // -> the last N lines of a life, when all is on disk
	opTail     = "tail"     // -> the last N lines
	opPing     = "ping"     // -> that it is at work
	opHandOver = "handover" // stop reading -> Parts, with their FIFOs
	opEnd      = "end"      // finish every log -> when it is done; then end
	opLost     = "lost"     // unasked: Dropped has changed
	opTrouble  = "trouble"  // unasked: Error about the log Name
)

// message is one frame. Which fields count depends on Op.
type message struct {
	ID       uint64            `json:"id,omitempty"`
	Op       string            `json:"op"`
	Protocol int               `json:"protocol,omitempty"`
	Program  string            `json:"program,omitempty"`
	Name     string            `json:"name,omitempty"`
	File     string            `json:"file,omitempty"`
	Options  *capture.Options  `json:"options,omitempty"`
	Line     string            `json:"line,omitempty"`
	N        int               `json:"n,omitempty"`
	Lines    []string          `json:"lines,omitempty"`
	Dropped  map[string]uint64 `json:"dropped,omitempty"`
	Parts    []part            `json:"parts,omitempty"` // one for each file, in order
	Error    string            `json:"error,omitempty"`

	files []int
}

// part is a FIFO that travels beside the message.
type part struct {
	Name string `json:"name"`
	Rest []byte `json:"rest,omitempty"`
}

func (m *message) closeFiles() {
	for _, fd := range m.files {
		unix.Close(fd)
	}
	m.files = nil
}

const (
	headBytes = 5 // length of the text, number of files
	maxText   = 64 << 20
	// maxFiles is what one system call can pass on.
	maxFiles = 250
	// sendLimit is how long a peer may not read before it is given up.
	sendLimit = 5 * time.Second
)

var errFrame = errors.New("damaged message")

// conn sends from any goroutine, and receives on one.
type conn struct {
	net *net.UnixConn

	sending sync.Mutex

	buf   []byte
	files []int
	oob   []byte
}

func newConn(c *net.UnixConn) *conn {
	return &conn{net: c, oob: make([]byte, unix.CmsgSpace(maxFiles*4))}
}

func (c *conn) close() { c.net.Close() }

// send does not keep the message's files. After an error the connection is of
// no use and is closed.
func (c *conn) send(m *message) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(m.files) > maxFiles || len(text) > maxText {
		return fmt.Errorf("send %s: too much for one message", m.Op)
	}
	b := binary.BigEndian.AppendUint32(make([]byte, 0, headBytes+len(text)), uint32(len(text)))
	b = append(append(b, byte(len(m.files))), text...)
	var oob []byte
	if len(m.files) > 0 {
		oob = unix.UnixRights(m.files...)
	}
	c.sending.Lock()
	defer c.sending.Unlock()
	c.net.SetWriteDeadline(time.Now().Add(sendLimit))
	n, _, err := c.net.WriteMsgUnix(b, oob, nil)
	if err == nil && n < len(b) {
		_, err = c.net.Write(b[n:])
	}
	if err != nil {
		c.close()
		return fmt.Errorf("send %s: %w", m.Op, err)
	}
	return nil
}

// receive waits for the next message. Its files are the caller's.
func (c *conn) receive() (*message, error) {
	for {
		if m, err := c.next(); m != nil || err != nil {
			return m, err
		}
		room := make([]byte, 64<<10)
		n, oobn, flags, _, err := c.net.ReadMsgUnix(room, c.oob)
		if oobn > 0 {
			if parts, perr := unix.ParseSocketControlMessage(c.oob[:oobn]); perr == nil {
				for i := range parts {
					if fds, ferr := unix.ParseUnixRights(&parts[i]); ferr == nil {
						for _, fd := range fds {
							unix.CloseOnExec(fd)
						}
						c.files = append(c.files, fds...)
					}
				}
			}
		}
		if err == nil && flags&unix.MSG_CTRUNC != 0 {
			err = errFrame
		}
		if err == nil && n == 0 {
			err = net.ErrClosed
		}
		if err != nil {
			for _, fd := range c.files {
				unix.Close(fd)
			}
			c.files = nil
			return nil, err
		}
		c.buf = append(c.buf, room[:n]...)
	}
}

// next takes a whole message out of what was received; nil if there is none.
func (c *conn) next() (*message, error) {
	if len(c.buf) < headBytes {
		return nil, nil
	}
	size, files := int(binary.BigEndian.Uint32(c.buf)), int(c.buf[4])
	if size > maxText {
		return nil, errFrame
	}
	if len(c.buf) < headBytes+size {
		return nil, nil
	}
	m := &message{}
	err := json.Unmarshal(c.buf[headBytes:headBytes+size], m)
	if err != nil || files > len(c.files) {
		return nil, errFrame
	}
	m.files = append(m.files, c.files[:files]...)
	c.files = c.files[files:]
	c.buf = append(c.buf[:0], c.buf[headBytes+size:]...)
	return m, nil
}
