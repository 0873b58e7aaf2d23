package layering

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	module = "github.com/standbyd/standbyd"
	root   = "../.."
)

type listed struct {
	ImportPath string
	Standard   bool
	Deps       []string
	Module     *struct{ Path string }
}

// list asks the go command about packages and what they reach on a platform.
func list(t *testing.T, goos string, patterns ...string) []listed {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go command to ask for imports")
	}
	cmd := exec.Command("go", append([]string{"list", "-e", "-deps", "-json=ImportPath,Standard,Deps,Module"}, patterns...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=-mod=mod -buildvcs=false", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list for %s: %v\n%s", goos, err, stderr.String())
	}
	var all []listed
	d := json.NewDecoder(bytes.NewReader(out))
	for {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// short is an import path without the module's prefix.
func short(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
}

func matches(pattern, path string) bool {
	if below, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == below || strings.HasPrefix(path, below+"/")
	}
	return path == pattern
}

func matchesAny(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, path) })
}

func TestImportsAreOneWay(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "freebsd", "windows"} {
		t.Run(goos, func(t *testing.T) {
			patterns := []string{"./..."}
			if goos == "windows" {
				patterns = []string{"./coord/..."}
			}
			packages := list(t, goos, patterns...)
			standard := map[string]bool{}
			for _, p := range packages {
				standard[p.ImportPath] = p.Standard
			}
			for _, p := range packages {
				if p.Module == nil || p.Module.Path != module {
					continue
				}
				for _, r := range rules {
					if !matches(r.of, short(p.ImportPath)) || matchesAny(r.except, short(p.ImportPath)) {
						continue
					}
					for _, dep := range p.Deps {
						if standard[dep] {
							continue
						}
						if broken(r, short(dep)) {
							t.Errorf("%s reaches %s, and must not: %s", short(p.ImportPath), short(dep), r.why)
						}
					}
				}
			}
		})
	}
}

func broken(r rule, dep string) bool {
	if r.only != nil && !matchesAny(r.only, dep) {
		return true
	}
	if matchesAny(internalOfCoord, dep) && !slices.Contains(r.never, dep) {
		return false
	}
	return matchesAny(r.never, dep)
}

// TestRulesCanFail keeps the rules from being true of everything.
func TestRulesCanFail(t *testing.T) {
	for _, c := range []struct {
		of, dep string
		want    bool
	}{
		{"coord/...", "github.com/hashicorp/go-hclog", true},
		{"coord/...", "internal/capture", true},
		{"coord/...", "coord/role", false},
		{"coord/...", "golang.org/x/sys/unix", false},
		{"coord/role", "coord/shm", true},
		{"supervisor", "plugins/host", true},
		{"supervisor", "google.golang.org/grpc", true},
		{"supervisor", "coord/election", false},
		{"plugins/...", "supervisor", true},
		{"plugins/...", "internal/proc", false},
	} {
		i := slices.IndexFunc(rules, func(r rule) bool { return r.of == c.of })
		if i < 0 {
			t.Fatalf("no rule for %s", c.of)
		}
		if got := broken(rules[i], c.dep); got != c.want {
			t.Errorf("%s on %s: broken = %t, want %t", c.of, c.dep, got, c.want)
		}
	}
}

// sources visits every Go file of the tree.
func sources(t *testing.T, visit func(path string, file *ast.File, files *token.FileSet)) {
	t.Helper()
	files := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) { // something else in the tree comes and goes
				return nil
			}
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "bin" || name == "data") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		visit(filepath.ToSlash(rel), file, files)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestUnsafeIsInOnePlace: address arithmetic can corrupt anything, so it stands
// in few small files, where it is read with care. Generated code is exempt.
func TestUnsafeIsInOnePlace(t *testing.T) {
	sources(t, func(path string, file *ast.File, _ *token.FileSet) {
		allowed := strings.HasPrefix(path, "coord/shm/") && strings.HasSuffix(path, "_unsafe.go") || strings.HasSuffix(path, ".pb.go") ||
			path == "coord/lease/types_test.go" // names unsafe.Pointer as a type that is refused
		for _, i := range file.Imports {
			if (i.Path.Value == `"unsafe"` || i.Path.Value == `"C"`) && !allowed {
				t.Errorf("%s imports %s; only coord/shm/*_unsafe.go may", path, i.Path.Value)
			}
		}
	})
}

// TestEveryPackageIsDescribedOnce: one package comment in every folder, so
// that its story is told in one place.
func TestEveryPackageIsDescribedOnce(t *testing.T) {
	described := map[string][]string{} // folder: files with a package comment
	folders := map[string]bool{}
	sources(t, func(path string, file *ast.File, _ *token.FileSet) {
		if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".pb.go") {
			return
		}
		dir := filepath.Dir(path)
		folders[dir] = true
		if file.Doc != nil && strings.TrimSpace(file.Doc.Text()) != "" {
			described[dir] = append(described[dir], path)
		}
	})
	for dir := range folders {
		if len(described[dir]) != 1 {
			t.Errorf("%s has %d package comments, want 1: %v", dir, len(described[dir]), described[dir])
		}
	}
}
