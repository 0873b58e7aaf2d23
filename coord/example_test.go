package coord_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/standbyd/standbyd/coord"
)

// A whole worker. Start it as the command of a role.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := coord.Run(ctx, func(ctx context.Context, l *coord.Leadership) error {
		for ctx.Err() == nil {
			if err := l.Check(); err != nil { // before each side effect
				return err
			}
			// ... what only the leader may do, stamped with l.Token() ...
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
}

// A server behind a socket that the supervisor holds: clients wait in it while
// nobody leads.
func ExampleLeadership_Listener() {
	lead := func(ctx context.Context, l *coord.Leadership) error {
		ln, err := l.Listener("http")
		if err != nil {
			return err
		}
		srv := &http.Server{}
		go srv.Serve(ln)
		<-ctx.Done()
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
		defer cancel()
		return srv.Shutdown(drain) // lead returns when the last request is answered
	}
	_ = coord.Run(context.Background(), lead)
}

// Each leader goes on from where the last one stopped.
func ExampleClaimOf() {
	type position struct{ File, Offset uint64 }
	lead := func(ctx context.Context, l *coord.Leadership) error {
		claim, err := coord.ClaimOf[position](l)
		if err != nil {
			return err
		}
		p, err := claim.Read()
		for err == nil && ctx.Err() == nil {
			p.Offset++                            // ... work ...
			if err = claim.Write(p); err == nil { // nobody else can have led meanwhile
				l.Member().Pulse() // and it moves
			}
		}
		return err
	}
	_ = coord.Run(context.Background(), lead)
}

// Without a supervisor, in pieces. Processes that name the same file elect
// among themselves.
func ExampleJoinFile() {
	ctx := context.Background()
	m, err := coord.JoinFile(ctx, "/run/user/1000/report.segment", coord.WithName("report"))
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	if err := m.Ready(); err != nil {
		log.Fatal(err)
	}
	l, err := m.Campaign(ctx) // until it leads
	if err != nil {
		log.Fatal(err)
	}
	defer l.Resign(ctx)
	fmt.Println("leads as", l.Token())
	<-l.Context().Done()
	fmt.Println("no longer:", context.Cause(l.Context()))
}

// Follow who leads.
func ExampleMember_Observe() {
	m, err := coord.Join(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	for info := range m.Observe(context.Background()) {
		if info.Active {
			fmt.Println(info.Name, "leads as", info.Token)
		}
	}
}
