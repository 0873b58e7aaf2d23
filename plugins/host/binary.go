package host

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// binary is the program of one start. If file is set it was verified through
// that descriptor and is executed through it.
type binary struct {
	path   string
	file   *os.File
	script bool // an interpreter will open it by name
}

func (b *binary) close() {
	if b.file != nil {
		b.file.Close()
	}
}

// findBinary resolves a command and, if sum is set, compares the file with it.
// Every error here needs a person.
func findBinary(command, dir, sum string) (*binary, error) {
	path := command
	switch {
	case filepath.IsAbs(path):
	case strings.Contains(path, "/"):
		abs, err := filepath.Abs(filepath.Join(dir, path))
		if err != nil {
			return nil, fmt.Errorf("find %s: %w", command, err)
		}
		path = abs
	default:
		found, err := exec.LookPath(path)
		if err != nil {
			return nil, fmt.Errorf("%s is not in PATH: install it, or give its whole path", command)
		}
		path = found
	}
	fi, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s does not exist: build or install it, or correct the command", path)
	case err != nil:
		return nil, fmt.Errorf("find the binary: %w", err)
	case fi.IsDir():
		return nil, fmt.Errorf("%s is a folder, not a program", path)
	case fi.Mode()&0o111 == 0:
		return nil, fmt.Errorf("%s is not executable: chmod +x it", path)
	}
	b := &binary{path: path}
	if sum == "" {
		return b, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("compare the sha256 of the binary: %w", err)
	}
	h := sha256.New()
	head := make([]byte, 2)
	n, _ := io.ReadFull(f, head)
	h.Write(head[:n])
	if _, err := io.Copy(h, f); err != nil {
		f.Close()
		return nil, fmt.Errorf("compare the sha256 of %s: %w", path, err)
	}
	if have := hex.EncodeToString(h.Sum(nil)); have != sum {
		f.Close()
		return nil, fmt.Errorf("%s has sha256 %s and the configuration says %s: not started", path, have, sum)
	}
	b.file, b.script = f, bytes.Equal(head, []byte("#!"))
	return b, nil
}
