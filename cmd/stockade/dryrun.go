package main

import (
	"encoding/json"
	"fmt"

	"stockade/biz/handler"
)

// request is one call that would be made.
type request struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Body   any    `json:"body,omitempty"`
}

// dryRun is what a command would do: the requests it would send, what they meet, and, as far as it can be told from
// here, why the first one would be refused.
type dryRun struct {
	Requests []request       `json:"requests"`
	Now      json.RawMessage `json:"now,omitempty"` // the SKU, order or dead letter as it is
	Refused  string          `json:"refused,omitempty"`
	summary  string          // Now in a line; empty: Now is a SKU, or there is none yet
}

func (c *cli) printDryRun(d dryRun) error {
	pairs := [][2]string{{"dry run", "nothing is changed"}}
	for _, r := range d.Requests {
		line := r.Method + " " + r.Path
		if r.Body != nil {
			body, err := json.Marshal(r.Body)
			if err != nil {
				return err
			}
			line += " " + string(body)
		}
		pairs = append(pairs, [2]string{"would send", line})
	}
	now := firstOf(d.summary, "no such SKU")
	var l handler.ListingJSON
	if d.summary == "" && json.Unmarshal(d.Now, &l) == nil && l.SKU != "" {
		now = fmt.Sprintf("%s is %s: total %d, promised %d, available %d",
			l.SKU, l.State, l.Ledger.Total, l.Ledger.Promised, l.Ledger.Available)
	}
	pairs = append(pairs, [2]string{"now", now})
	if d.Refused != "" {
		pairs = append(pairs, [2]string{"would be refused", d.Refused})
	}
	return c.fields(d, pairs...)
}
