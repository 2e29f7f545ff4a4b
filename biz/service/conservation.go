package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"stockade/biz/sale"
)

// Bounds of watching the conservation of units.
const (
	driftStreak = 3    // measurements in a row, of the same sign, that make a drift
	maxReadings = 4096 // SKUs whose last measurement is remembered
)

// Conservation measures whether every unit is promised, left or pending: total = promised + Σ left + Σ pending, but for
// what is on its way between MySQL and the gate.
type Conservation struct {
	ConservationParts

	mu       sync.Mutex
	readings map[string]*Reading
}

// ConservationParts are what a Conservation is made of.
type ConservationParts struct {
	Ledgers Ledgers
	Gate    Gate
	Books   Bookkeeper
	Hints   Hints
	// PauseOnUnexplained pauses the sale of a SKU whose drift a full reshare did not end.
	PauseOnUnexplained bool
	Audit              *AuditLog // nil: none
	Now                func() time.Time
	Log                *slog.Logger
}

// Reading is what the last measurement of a SKU found.
type Reading struct {
	SKU   string
	Terms Terms
	At    time.Time
	// Streak counts measurements in a row whose drift is out of bounds with the same sign; it has that sign.
	Streak int
	// Unexplained says that the drift is still there after the full reshare that it had asked for.
	Unexplained bool

	epoch  int64 // of the ledger
	healed bool  // a full reshare has run, and no measurement since was within bounds
}

// Terms are the terms of the equation at one moment, in units.
type Terms struct {
	Total      int64 `json:"total"`
	Promised   int64 `json:"promised"`
	Left       int64 `json:"left"`       // Σ over the shares
	Pending    int64 `json:"pending"`    // Σ over the shares
	Uncredited int64 `json:"uncredited"` // of closed orders that the gate has not got back
	Changes    int64 `json:"changes"`    // promised and closed while this was measured
}

// Drift is total − promised − left − pending.
func (t Terms) Drift() int64 { return t.Total - t.Promised - t.Left - t.Pending }

// Bounds tell what of a drift is on its way. A promised take is pending until its share hears of it; a closed order's
// units are uncredited until its share has them; and what was promised and closed meanwhile may count or not.
func (t Terms) Bounds() (low, high int64) { return -t.Pending - t.Changes, t.Uncredited + t.Changes }

// Excess is what is out of bounds: the units that nothing on its way can explain.
func (t Terms) Excess() int64 {
	low, high := t.Bounds()
	switch d := t.Drift(); {
	case d < low:
		return d - low
	case d > high:
		return d - high
	}
	return 0
}

// NewConservation returns the use case.
func NewConservation(p ConservationParts) *Conservation {
	return &Conservation{ConservationParts: p, readings: map[string]*Reading{}}
}

// errMoved says that a reshare came between the parts of a measurement.
var errMoved = errors.New("the shares were laid out anew meanwhile")

// Terms reads the terms. The order of the reads is the point: what is closed before the first look at the ledger is among
// the uncredited if the peek does not find it credited; what is closed later is among the changes.
func (c *Conservation) Terms(ctx context.Context, sku string) (Terms, sale.Listing, []sale.Figures, error) {
	first, err := c.Ledgers.Listing(ctx, sku)
	if err != nil {
		return Terms{}, first, nil, err
	}
	t := Terms{Total: first.Ledger.Total, Promised: first.Ledger.Promised}
	if t.Uncredited, err = c.Books.Uncredited(ctx, sku); err != nil {
		return t, first, nil, err
	}
	figures, err := c.Gate.Peek(ctx, sku, first.Slots)
	if err != nil {
		return t, first, nil, err
	}
	for _, f := range figures {
		t.Left += f.Left - f.Short
		t.Pending += f.Pending
	}
	second, err := c.Ledgers.Listing(ctx, sku)
	if err != nil {
		return t, first, figures, err
	}
	t.Changes = second.Ledger.Changes - first.Ledger.Changes
	if second.Ledger.Epoch != first.Ledger.Epoch || second.Slots != first.Slots {
		return t, first, figures, errMoved
	}
	return t, first, figures, nil
}

// Measure takes one measurement of a SKU and tells what to ask the healer for, and about which epoch; 0 when nothing is
// wrong, or nothing can be told now.
func (c *Conservation) Measure(ctx context.Context, sku string) (why Why, epoch int64, err error) {
	terms, l, figures, err := c.Terms(ctx, sku)
	switch {
	case errors.Is(err, errMoved), errors.Is(err, sale.ErrNotFound), err == nil && !keepsShares(l):
		return 0, l.Ledger.Epoch, nil
	case err != nil:
		return 0, 0, err
	case !l.Ledger.Live() || mismatch(figures, l.Ledger.LaidGate, l) != "":
		return WhyLoss, l.Ledger.Epoch, nil
	}
	reading, news := c.note(sku, l.Ledger.Epoch, terms)
	if news {
		c.unexplained(ctx, reading)
	}
	if reading.Streak >= driftStreak || reading.Streak <= -driftStreak {
		return WhyDrift, l.Ledger.Epoch, nil
	}
	return 0, l.Ledger.Epoch, nil
}

// note remembers a measurement. news tells that it makes a drift an unexplained one.
func (c *Conservation) note(sku string, epoch int64, t Terms) (reading Reading, news bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.readings[sku]
	if r == nil {
		r = &Reading{SKU: sku}
		c.room()
		c.readings[sku] = r
	}
	if r.epoch != epoch {
		r.epoch, r.Streak = epoch, 0 // a reshare, on whatever node, has laid the truth out since
	}
	r.Terms, r.At = t, c.Now()
	switch excess := t.Excess(); {
	case excess == 0:
		r.Streak, r.healed, r.Unexplained = 0, false, false
	case excess > 0:
		r.Streak = min(max(r.Streak, 0)+1, driftStreak)
	default:
		r.Streak = max(min(r.Streak, 0)-1, -driftStreak)
	}
	if r.healed && !r.Unexplained && (r.Streak == driftStreak || r.Streak == -driftStreak) {
		r.Unexplained, news = true, true
	}
	return *r, news
}

// room makes room for one more reading: those that say the least, and were taken first, go. The caller holds mu.
func (c *Conservation) room() {
	if len(c.readings) < maxReadings {
		return
	}
	var oldest *Reading
	for _, r := range c.readings {
		if oldest == nil || (r.Streak == 0 && oldest.Streak != 0) || (r.Streak == 0) == (oldest.Streak == 0) && r.At.Before(oldest.At) {
			oldest = r
		}
	}
	delete(c.readings, oldest.SKU)
}

// reshared begins the count anew: a full reshare ends every drift that has a cause it knows of.
func (c *Conservation) reshared(sku string, record ReshareRecord) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.readings[sku]; r != nil {
		drifted := r.Streak >= driftStreak || r.Streak <= -driftStreak
		r.Streak, r.healed = 0, r.healed || (drifted && record.Full)
	}
}

// unexplained tells of a drift that a full reshare did not end, once, and pauses the sale if that is configured.
func (c *Conservation) unexplained(ctx context.Context, r Reading) {
	c.Log.ErrorContext(ctx, "unexplained drift: a full reshare did not end it", "sku", r.SKU, "units", r.Terms.Excess(),
		"total", r.Terms.Total, "promised", r.Terms.Promised, "left", r.Terms.Left, "pending", r.Terms.Pending,
		"uncredited", r.Terms.Uncredited, "pausing", c.PauseOnUnexplained)
	if !c.PauseOnUnexplained {
		return
	}
	if err := c.Ledgers.SetState(ctx, r.SKU, []sale.SKUState{sale.Open}, sale.Paused); err != nil {
		c.Log.ErrorContext(ctx, "sale not paused", "sku", r.SKU, "error", err)
		return
	}
	c.Audit.Record(ctx, sale.AuditEntry{
		Actor: sale.ServiceActor, Action: "sku.pause", Target: r.SKU,
		Reason: fmt.Sprintf("unexplained drift of %d units after a full reshare", r.Terms.Excess()),
	})
	if err := c.Hints.Send(ctx, r.SKU); err != nil {
		c.Log.DebugContext(ctx, "hint not sent", "sku", r.SKU, "error", err) // nodes look by themselves
	}
}

// Readings lists the last measurements of this node, one a SKU, in no order.
func (c *Conservation) Readings() []Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Reading, 0, len(c.readings))
	for _, r := range c.readings {
		all = append(all, *r)
	}
	return all
}

// UnexplainedDrift is the sum of what is unexplained, without signs, over all SKUs that this node measures; it should be
// 0.
func (c *Conservation) UnexplainedDrift() (units int64) {
	for _, r := range c.Readings() {
		if r.Unexplained {
			units += max(r.Terms.Excess(), -r.Terms.Excess())
		}
	}
	return units
}
