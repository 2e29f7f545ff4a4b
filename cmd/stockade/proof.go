package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"stockade/biz/sale"
	"stockade/biz/service"
)

func (c *cli) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit SKU",
		Short: "Print the proof that every unit and every order of a SKU is accounted for",
		Long: "Compares ledger, outbox rows, order rows and shares. The exit status is 1 when they do not agree. It reads every\n" +
			"row of the SKU.",
		Example: "  stockade audit demo\n  stockade audit demo -o json",
		Args:    exactArgs("SKU"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, path, err := c.patientSKU(cmd, args[0])
			if err != nil {
				return err
			}
			defer showWaiting(c.stderr, "auditing "+args[0])()
			raw, err := cl.call(cmd.Context(), http.MethodGet, path+"/audit", nil)
			if err != nil {
				return err
			}
			var a service.Audit
			if json.Unmarshal(raw, &a) != nil || a.SKU == "" {
				return notWhat("an audit")
			}
			if err := c.fields(raw, auditLines(a)...); err != nil {
				return err
			}
			if !a.Holds {
				return fail(exitRefused, fmt.Errorf("the books of %s do not agree", a.SKU))
			}
			return nil
		},
	}
	c.adminFlag(cmd)
	return cmd
}

func auditLines(a service.Audit) [][2]string {
	lines := [][2]string{
		{"sku", fmt.Sprintf("%s is %s, path %s, epoch %d", a.SKU, a.State, a.Path, a.Epoch)},
		{"ledger", fmt.Sprintf("promised %d = live units %d · sold %d = paid units %d: %s", a.Books.Promised, a.Books.LiveUnits,
			a.Books.Sold, a.Books.PaidUnits, yes(a.Books.Promised == a.Books.LiveUnits && a.Books.Sold == a.Books.PaidUnits))},
	}
	if g := a.Gate; g != nil {
		lines = append(lines,
			[2]string{"units", fmt.Sprintf("total %d − promised %d − left %d − pending %d = drift %d", g.Total, g.Promised, g.Left, g.Pending, g.Drift)},
			[2]string{"on their way", fmt.Sprintf("pending %d, uncredited %d, changed meanwhile %d; unexplained %d: %s",
				g.Pending, g.Uncredited, g.Changes, g.Excess, yes(g.Excess == 0))},
			[2]string{"shares", fmt.Sprintf("%d with units, stranded %d", a.Shares, a.Stranded)})
	} else {
		lines = append(lines, [2]string{"units", fmt.Sprintf("total %d − promised %d = %d; the shares do not count", a.Books.Total,
			a.Books.Promised, a.Books.Total-a.Books.Promised)})
	}
	lines = append(lines,
		[2]string{"orders", fmt.Sprintf("%d unpaid, %d paid, %d closed, %d on their way",
			a.Books.Unpaid, a.Books.Paid, a.Books.Closed, a.Queued)},
		[2]string{"oversold", whole(a.Oversold)},
		[2]string{"over limit", whole(a.OverLimit)},
		[2]string{"lost", whole(a.Lost)},
		[2]string{"duplicates", whole(a.Duplicates)},
		[2]string{"half closed", whole(a.HalfClosed)})
	for _, t := range []struct {
		name  string
		times service.ReshareTimes
	}{{"light reshares", a.Light}, {"full reshares", a.Full}} {
		if t.times.Count > 0 {
			lines = append(lines, [2]string{t.name, fmt.Sprintf("%d by this node, p50 %s, p99 %s", t.times.Count,
				t.times.P50.Round(time.Microsecond), t.times.P99.Round(time.Microsecond))})
		}
	}
	return append(lines, [2]string{"holds", yes(a.Holds)})
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "NO"
}

func (c *cli) reconcileCommand() *cobra.Command {
	var fix bool
	cmd := &cobra.Command{
		Use:   "reconcile [SKU] [--fix]",
		Short: "Compare every row that should agree, and mend what does not",
		Long: "Without --fix nothing is changed. With it orders, ledger and shares are corrected as far as the rows say how. Without\n" +
			"a SKU every SKU is compared in turn. The exit status is 1 when something does not agree at the end.",
		Example: "  stockade reconcile demo\n  stockade reconcile demo --fix\n  stockade reconcile -o jsonl",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fail(exitUsage, fmt.Errorf("%s takes at most one SKU, got %d arguments", cmd.CommandPath(), len(args)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := c.admin(cmd)
			if err != nil {
				return err
			}
			cl.http.Timeout = longCall
			if len(args) == 0 {
				return c.reconcileAll(cmd.Context(), cl, fix)
			}
			defer showWaiting(c.stderr, "reconciling "+args[0])()
			r, raw, err := c.reconcile(cmd.Context(), cl, args[0], fix)
			if err != nil {
				return err
			}
			if err := c.fields(raw, reconciliationLines(r)...); err != nil || r.Agrees {
				return err
			}
			return fail(exitRefused, fmt.Errorf("%s does not agree", r.SKU))
		},
	}
	c.adminFlag(cmd)
	cmd.Flags().BoolVar(&fix, "fix", false, "correct what can be corrected")
	reasonFlag(cmd)
	return cmd
}

func (c *cli) reconcile(ctx context.Context, cl *client, id string, fix bool) (r service.Reconciliation, raw json.RawMessage, err error) {
	path, err := skuPath(id)
	if err != nil {
		return r, nil, err
	}
	raw, err = cl.call(ctx, http.MethodPost, path+"/reconcile", map[string]bool{"fix": fix})
	if err != nil {
		return r, nil, err
	}
	if json.Unmarshal(raw, &r) != nil || r.SKU == "" {
		return r, nil, notWhat("a reconciliation")
	}
	return r, raw, nil
}

// reconcileAll goes on past a SKU that cannot be compared.
func (c *cli) reconcileAll(ctx context.Context, cl *client, fix bool) error {
	skus, err := cl.pages(ctx, skusPath, "skus", "", 0)
	if err != nil {
		return err
	}
	out := result{header: []string{"SKU", "STATE", "PROMISED", "LIVE", "SOLD", "PAID", "DRIFT", "DIFFER", "CORRECTED", "AGREES"}}
	done := showProgress(c.stderr, "reconciling", len(skus))
	var failed []error
	disagree := 0
	for _, row := range skus {
		v, err := parseSKU(row)
		if err != nil {
			return err
		}
		r, raw, err := c.reconcile(ctx, cl, v.SKU, fix)
		done()
		if err != nil {
			failed = append(failed, fmt.Errorf("sku %s: %w", v.SKU, err))
			continue
		}
		if !r.Agrees {
			disagree++
		}
		drift := "-"
		if r.Gate != nil {
			drift = whole(r.Gate.Excess)
		}
		out.add(raw, r.SKU, string(r.State), whole(r.After.Promised), whole(r.After.LiveUnits), whole(r.After.Sold), whole(r.After.PaidUnits),
			drift, whole(r.Differ), whole(r.Corrected), yes(r.Agrees))
	}
	if err := c.print(out); err != nil {
		return err
	}
	switch {
	case len(failed) > 0:
		return fail(exitCode(failed[0]), errors.Join(failed...))
	case disagree > 0:
		return fail(exitRefused, fmt.Errorf("%d of %d SKUs do not agree", disagree, len(skus)))
	}
	return nil
}

func reconciliationLines(r service.Reconciliation) [][2]string {
	lines := [][2]string{
		{"sku", fmt.Sprintf("%s is %s, total %d", r.SKU, r.State, r.Total)},
		{"ledger", fmt.Sprintf("promised %d, live units %d, sold %d, paid units %d: %s", r.Ledger.Promised, r.Ledger.LiveUnits,
			r.Ledger.Sold, r.Ledger.PaidUnits, yes(r.Ledger.Agrees()))},
	}
	if g := r.Gate; g != nil {
		lines = append(lines,
			[2]string{"shares", fmt.Sprintf("left %d, pending %d, uncredited %d, changed meanwhile %d", g.Left, g.Pending, g.Uncredited, g.Changes)},
			[2]string{"drift", fmt.Sprintf("%d, of which unexplained %d", g.Drift, g.Excess)})
	}
	lines = append(lines, [2]string{"orders that differ", whole(r.Differ)})
	for _, kind := range slices.Sorted(maps.Keys(r.Kinds)) {
		lines = append(lines, [2]string{"  " + string(kind), whole(r.Kinds[kind])})
	}
	for _, d := range r.Orders {
		lines = append(lines, [2]string{"  " + d.Order.String(), discrepancy(d)})
	}
	if r.Fix {
		lines = append(lines, [2]string{"corrected", fmt.Sprintf("%d orders; promised %d, sold %d; reshared: %s",
			r.Corrected, r.After.Promised, r.After.Sold, yes(r.Reshared))})
	}
	return append(lines, [2]string{"agrees", yes(r.Agrees)})
}

func discrepancy(d sale.Discrepancy) string {
	return fmt.Sprintf("%s: buyer %s, quantity %d, outbox %s, order %s; correction: %s", d.Kind, oneLine(d.Buyer), d.Quantity,
		firstOf(d.Outbox, "none"), firstOf(string(d.Row), "none"), firstOf(d.Correction, "none, look into it"))
}
