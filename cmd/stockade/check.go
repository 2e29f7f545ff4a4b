package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stockade/biz/handler"
)

// What check answers, after the convention of monitoring plugins.
const (
	checkReady    = 0
	checkDegraded = 1
	checkNotReady = 2
	checkUnknown  = 3

	checkTimeout = 5 * time.Second        // of one look
	checkEvery   = 200 * time.Millisecond // between two looks
)

// sighting is the result of a look at /readyz.
type sighting struct {
	Status  string   `json:"status"` // ready, degraded, not ready, unknown
	Reasons []string `json:"reasons,omitempty"`
	exit    int
}

func (c *cli) checkCommand() *cobra.Command {
	var public string
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Tell whether a node is ready, for scripts and monitors",
		Long: "Asks a node's /readyz. Exit status: 0 ready, 1 ready but a dependency is down, 2 not ready or not\n" +
			"reachable, 3 cannot tell. With --wait it asks again until the node is ready or the time is over.",
		Example: "  stockade check\n  stockade check --wait 30s --public http://10.0.0.7:8080",
		Args:    exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := c.newClient("public", public, publicEnv, defaultPublic)
			if err != nil {
				return err
			}
			cl.http.Timeout = checkTimeout
			h, err := await(cmd.Context(), cl, wait)
			if err != nil {
				return err
			}
			line := h.Status
			if len(h.Reasons) > 0 {
				line += ": " + strings.Join(h.Reasons, ", ")
			}
			if err := c.print(result{objects: []any{h}, rows: [][]string{{oneLine(line)}}, single: true}); err != nil {
				return err
			}
			if h.exit != checkReady {
				return fail(h.exit, errSilent)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&public, "public", "", "URL of the public API (environment: "+publicEnv+"; default "+defaultPublic+")")
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait so long for the node to become ready")
	return cmd
}

// await looks until the node is ready or degraded, or the time is over; the last look counts.
func await(ctx context.Context, cl *client, wait time.Duration) (sighting, error) {
	deadline := time.Now().Add(wait)
	for {
		h := look(ctx, cl)
		if ctx.Err() != nil {
			return h, ctx.Err()
		}
		left := time.Until(deadline)
		if h.exit <= checkDegraded || left <= 0 {
			return h, nil
		}
		timer := time.NewTimer(min(checkEvery, left))
		select {
		case <-ctx.Done():
			timer.Stop()
			return h, ctx.Err()
		case <-timer.C:
		}
	}
}

func look(ctx context.Context, cl *client) sighting {
	status, body, err := cl.send(ctx, http.MethodGet, "/readyz", nil)
	if err != nil {
		return sighting{Status: "not ready", Reasons: []string{err.Error()}, exit: checkNotReady}
	}
	var r handler.Readiness
	malformed := json.Unmarshal(body, &r)
	switch {
	case malformed != nil || (status != http.StatusOK && status != http.StatusServiceUnavailable):
		return sighting{Status: "unknown", Reasons: []string{fmt.Sprintf("%s answered HTTP %d", cl.shown(), status)}, exit: checkUnknown}
	case status != http.StatusOK || !r.Ready:
		return sighting{Status: "not ready", Reasons: r.Reasons, exit: checkNotReady}
	case len(r.Degraded) > 0:
		return sighting{Status: "degraded", Reasons: r.Degraded, exit: checkDegraded}
	}
	return sighting{Status: "ready", exit: checkReady}
}
