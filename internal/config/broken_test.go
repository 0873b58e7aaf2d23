package config

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/standbyd/standbyd/internal/sockpath"
)

// Commit only diffs of the golden files that you understand.
var update = flag.Bool("update", false, "rewrite golden files and the table in docs/config.md")

// TestBroken shows what a user reads about each broken file in
// testdata/broken.
func TestBroken(t *testing.T) {
	for _, name := range []string{"XDG_RUNTIME_DIR", "XDG_STATE_HOME"} {
		t.Setenv(name, "/tmp/xdg")
	}
	t.Chdir("testdata/broken")
	files, err := filepath.Glob("*.toml")
	if err != nil || len(files) < 20 {
		t.Fatalf("only %d broken files (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(file, ".toml"), func(t *testing.T) {
			_, err := Load(file)
			var problems Problems
			if !errors.As(err, &problems) || len(problems) == 0 {
				t.Fatalf("Load(%s) = %v, want Problems", file, err)
			}
			for _, p := range problems {
				if p.File == "" || p.Line == 0 || p.Col == 0 || p.Msg == "" {
					t.Errorf("incomplete: %+v", p)
				}
			}
			cwd, err2 := filepath.Abs(".")
			if err2 != nil {
				t.Fatal(err2)
			}
			text := strings.NewReplacer(cwd, "$FOLDER", fmt.Sprintf("has at most %d:", sockpath.Max), "has at most 107:").Replace(err.Error())
			golden(t, strings.TrimSuffix(file, ".toml")+".txt", text+"\n")
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s:\ngot:\n%s\nwant:\n%s", file, got, want)
	}
}
