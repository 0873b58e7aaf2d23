package filelease

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// replaceFile gives path new content so that, whatever happens, it has the old
// content or the new, on disk before the return. Only inside the critical
// section: the new file's name is fixed.
func replaceFile(path string, content []byte) error {
	next := path + ".new"
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	name := filepath.Ext(path)
	step("created new " + name)
	_, err = f.Write(content)
	step("wrote new " + name)
	if err == nil {
		err = f.Sync()
	}
	step("synced new " + name)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		os.Remove(next)
		return fmt.Errorf("replace %s, which keeps its old content: %w", path, err)
	}
	step("renamed new " + name)
	if err := syncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("sync the folder of %s: %w", path, err)
	}
	step("synced folder of " + name)
	return nil
}

// removeFile removes path durably; that it does not exist is no error.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	step("removed " + filepath.Ext(path))
	return syncDir(filepath.Dir(path))
}
