//go:build unix

package launch

import "testing"

// BenchmarkStart: from Start to the end of a program that does nothing.
func BenchmarkStart(b *testing.B) {
	for _, c := range []struct {
		name   string
		staged bool
	}{{"direct", false}, {"staged", true}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				p, err := Start(Spec{Path: "/bin/true", Umask: -1, Staged: c.staged})
				if err != nil {
					b.Fatal(err)
				}
				if c.staged {
					if err := p.Release(); err != nil {
						b.Fatal(err)
					}
				}
				<-p.Done()
				p.Reap()
				p.Close()
			}
		})
	}
}
