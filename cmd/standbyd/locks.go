package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/standbyd/standbyd/coord/filelease"
)

func (a *app) locksVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "locks",
		Short: "List leases and who holds them",
		Long: `List the leases of a folder and who holds them. Without --root it is the daemon's
state folder, where "standbyd" is the lease of the daemon itself.

States: free, held, expired and dead. Of the last two, the next one to ask gets
the lease.`,
		Args: atMost(0),
	}
	root := c.Flags().String("root", "", "`folder` of the leases, which must exist; the daemon's state folder if not given")
	all := c.Flags().Bool("all", false, "also keys that only count, as those of the roles' generations")
	c.MarkFlagDirname("root")
	f := addForm(c, "table", "json")
	return a.verb(c, func(ctx context.Context, _ []string) error {
		dir, err := a.lockRoot(*root)
		if err != nil {
			return err
		}
		if *root != "" {
			if err := rootExists(dir); err != nil {
				return err
			}
		}
		list, err := readLocks(ctx, dir, *all)
		if err != nil {
			return err
		}
		if f.json() {
			for _, s := range list {
				if err := printJSON(a.stdout, lockJSONOf(s)); err != nil {
					return err
				}
			}
			return nil
		}
		return a.lockTable(dir, list)
	})
}

// readLocks makes nothing that is not there.
func readLocks(ctx context.Context, root string, all bool) ([]filelease.Status, error) {
	if _, err := os.Stat(filepath.Join(root, "leases")); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	store, err := filelease.Open(root, filelease.AllowNetworkFS())
	if err != nil {
		return nil, err
	}
	keys, err := store.Keys()
	if err != nil {
		return nil, err
	}
	var list []filelease.Status
	for _, key := range keys {
		s, err := store.Inspect(ctx, key)
		if err != nil {
			return list, err
		}
		if s.Leased || all {
			list = append(list, s)
		}
	}
	return list, nil
}

func (a *app) lockTable(dir string, list []filelease.Status) error {
	if len(list) == 0 {
		_, err := fmt.Fprintf(a.stdout, "no leases in %s\n", dir)
		return err
	}
	now := time.Now()
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KEY\tSTATE\tTOKEN\tHOLDER\tCOMMAND PID\tSINCE\tRENEWED")
	for _, s := range list {
		holder, command, since, renewed := "-", "-", "-", "-"
		if h := s.Holder; h != nil {
			holder = h.String()
			if h.Command != 0 {
				command = strconv.Itoa(h.Command)
			}
			if !h.Since.IsZero() {
				since = ago(h.Since, now) + " ago"
			}
			if !h.Renewed.IsZero() {
				renewed = ago(h.Renewed, now) + " ago"
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", s.Key, s.State, s.Epoch, holder, command, since, renewed)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, s := range list {
		var held *filelease.HeldError
		if errors.As(s.Err, &held) && held.Why != "" {
			fmt.Fprintf(a.stdout, "%s: %s\n", s.Key, held.Why)
		}
	}
	return nil
}

// lockJSON is a line of `locks -o json`. Numbers that can exceed 2^53 are
// strings; what is not known is absent.
type lockJSON struct {
	Key    string          `json:"key"`
	State  filelease.State `json:"state"`
	Token  string          `json:"token"`
	Holder *holderJSON     `json:"holder"` // null: nobody
	Why    string          `json:"why,omitempty"`
}

type holderJSON struct {
	PID         int       `json:"pid,omitempty"`
	Host        string    `json:"host,omitempty"`
	CommandPID  int       `json:"command_pid,omitempty"`
	Run         string    `json:"run,omitempty"`
	Block       string    `json:"block,omitempty"`
	Label       string    `json:"label,omitempty"`
	Version     string    `json:"version,omitempty"`
	SessionHint string    `json:"session_hint,omitempty"`
	Since       time.Time `json:"since,omitzero"`
	Renewed     time.Time `json:"renewed,omitzero"`
	AgeSeconds  float64   `json:"age_s,omitempty"`
	TTLSeconds  float64   `json:"ttl_s,omitempty"`
	ExpiresIn   float64   `json:"expires_in_s,omitempty"` // at the earliest; absent: not by time
	Pinned      bool      `json:"pinned"`
}

func lockJSONOf(s filelease.Status) lockJSON {
	j := lockJSON{Key: s.Key, State: s.State, Token: strconv.FormatUint(s.Epoch, 10)}
	var held *filelease.HeldError
	if errors.As(s.Err, &held) {
		j.Why = held.Why
	}
	if h := s.Holder; h != nil {
		j.Holder = &holderJSON{
			PID: h.PID, Host: h.Host, CommandPID: h.Command, Run: h.Run, Block: h.Block, Label: h.Label, Version: h.Version,
			SessionHint: h.SessionHint, Since: h.Since, Renewed: h.Renewed,
			TTLSeconds: h.TTL.Seconds(), ExpiresIn: max(h.ExpiresIn, 0).Seconds(), Pinned: h.Pinned,
		}
		if !h.Since.IsZero() {
			j.Holder.AgeSeconds = max(time.Since(h.Since), 0).Round(time.Second).Seconds()
		}
	}
	return j
}
