//go:build linux

package conformance

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/standbyd/standbyd/coord"
)

// work is a tiny worker that misbehaves as its flags say. It does not return.
func work(args []string) {
	f := flag.NewFlagSet("tw", flag.ExitOnError)
	fork := f.Int("fork", 0, "start that many children that do nothing")
	setsid := f.Bool("setsid", false, "the children leave the process group")
	bare := f.Bool("bare", false, "the children have no environment")
	hold := f.String("hold", "", "the children hold this address open")
	pids := f.String("pids", "", "append the children's pids to this file")
	ignore := f.Bool("ignore-term", false, "take no notice of SIGTERM")
	readyAfter := f.Duration("ready-after", 0, "warm up for that long")
	var d duty
	f.StringVar(&d.leads, "leads", "", "append a line to this file for each leadership, and lock it meanwhile")
	f.BoolVar(&d.serve, "serve", false, "while leading, answer HTTP requests on the role's listener \"http\"")
	f.DurationVar(&d.drain, "drain", 0, "go on leading for that long when it is over")
	f.StringVar(&d.guard, "guard", "", "while leading, write the token into the role's payload all the time, and tell this file what comes of it")
	watchdog := f.Bool("watchdog", false, "say WATCHDOG=1 as often as the role's watchdog wants it")
	idle := f.Bool("idle", false, "only sleep: the child of -fork")
	f.Parse(args)
	if *idle {
		time.Sleep(time.Hour)
	}
	if *watchdog {
		go beatWatchdog()
	}
	var held []*os.File
	if *hold != "" {
		if l, err := net.Listen("tcp", *hold); err == nil { // one of the workers has it
			file, _ := l.(*net.TCPListener).File()
			held = append(held, file)
		}
	}
	for range *fork {
		c := exec.Command(os.Args[0], "tw", "-idle")
		c.ExtraFiles = held
		if *bare {
			c.Env = []string{}
		}
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: *setsid}
		if err := c.Start(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		out, err := os.OpenFile(*pids, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		out.WriteString(strconv.Itoa(c.Process.Pid) + "\n")
		out.Close()
	}
	ctx := context.Background()
	if *ignore {
		signal.Ignore(syscall.SIGTERM)
	} else {
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGTERM)
		defer stop()
	}
	warm := func(ctx context.Context, _ *coord.Member) error {
		select {
		case <-time.After(*readyAfter):
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	if err := coord.Run(ctx, d.lead, coord.WithWarmup(warm)); err != nil && ctx.Err() == nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}
