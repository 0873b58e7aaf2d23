//go:build unix

package capture

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	// quiet is how long no file must have been rotated before one is
	// compressed: a log that fills its files faster is thrown away faster too.
	quiet      = time.Second
	pressBlock = 256 << 10
)

// pressing lets one file at a time be compressed by this process.
var pressing = make(chan struct{}, 1)

// press compresses rotated files, aside from the write loop and at half speed
// at most, so that it never holds a line up.
type press struct {
	path string
	mu   sync.Mutex // held while files are renamed

	state   sync.Mutex
	options Options
	working bool
	poked   time.Time
	stop    chan struct{}
	stopped bool
	done    sync.WaitGroup
}

func newPress(path string) *press { return &press{path: path, stop: make(chan struct{})} }

// look is told that there may be something to compress.
func (p *press) look(o Options) {
	p.state.Lock()
	defer p.state.Unlock()
	p.options, p.poked = o, time.Now()
	if o.Compress && o.Keep > 0 && !p.working && !p.stopped {
		p.working = true
		p.done.Go(p.work)
	}
}

// close ends it; a file that is half done is left as it was.
func (p *press) close() {
	p.state.Lock()
	if !p.stopped {
		p.stopped = true
		close(p.stop)
	}
	p.state.Unlock()
	p.done.Wait()
}

func (p *press) work() {
	for {
		p.state.Lock()
		rest := quiet - time.Since(p.poked)
		p.state.Unlock()
		if rest > 0 {
			if p.pause(rest) != nil {
				return
			}
			continue
		}
		select {
		case pressing <- struct{}{}:
		case <-p.stop:
			return
		}
		more := p.oldest()
		<-pressing
		p.state.Lock()
		if !more && time.Since(p.poked) >= quiet {
			p.working = false
			p.state.Unlock()
			return
		}
		p.state.Unlock()
	}
}

var errStopped = errors.New("stopped")

func (p *press) pause(d time.Duration) error {
	select {
	case <-p.stop:
		return errStopped
	case <-time.After(d):
		return nil
	}
}

// oldest compresses the oldest rotated file that is not. False: there is none,
// or it cannot be done now.
func (p *press) oldest() bool {
	p.mu.Lock()
	last := 0
	for i := 1; ; i++ {
		_, plain := os.Lstat(rotated(p.path, i))
		_, small := os.Lstat(pressed(p.path, i))
		if plain == nil {
			last = i
		} else if small != nil {
			break
		}
	}
	if last == 0 {
		p.mu.Unlock()
		return false
	}
	in, err := os.Open(rotated(p.path, last))
	p.mu.Unlock()
	if err != nil {
		return false
	}
	defer in.Close()
	return p.squeeze(in) == nil
}

func (p *press) squeeze(in *os.File) error {
	fi, err := in.Stat()
	if err != nil {
		return err
	}
	temp := p.path + ".gz.part"
	out, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	defer out.Close()
	z, _ := gzip.NewWriterLevel(out, gzip.BestSpeed)
	z.Comment = originOf(fi).String()
	block := make([]byte, pressBlock)
	for {
		began := time.Now()
		n, err := in.Read(block)
		if n > 0 {
			if _, err := z.Write(block[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if err := p.pause(time.Since(began)); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	if err := os.Chtimes(temp, fi.ModTime(), fi.ModTime()); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// It may have been moved meanwhile, or be gone.
	for i := 1; ; i++ {
		now, err := os.Lstat(rotated(p.path, i))
		if err == nil && os.SameFile(now, fi) {
			if err := os.Rename(temp, pressed(p.path, i)); err != nil {
				return err
			}
			return os.Remove(rotated(p.path, i))
		}
		if _, small := os.Lstat(pressed(p.path, i)); err != nil && small != nil {
			return nil
		}
	}
}

// origin recognises a rotated file after it was compressed.
type origin struct {
	inode uint64
	mtime int64
}

func originOf(fi os.FileInfo) origin {
	o := origin{mtime: fi.ModTime().UnixNano()}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		o.inode = uint64(st.Ino)
	}
	return o
}

func (o origin) String() string { return fmt.Sprintf("%d %d", o.inode, o.mtime) }

func parseOrigin(text string) (o origin) {
	if n, err := fmt.Sscanf(text, "%d %d", &o.inode, &o.mtime); n != 2 || err != nil {
		return origin{} // somebody else compressed it
	}
	return o
}
