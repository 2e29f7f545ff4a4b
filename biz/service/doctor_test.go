package service_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// clinic fakes everything that an examination asks: one SKU, "demo", on three masters, with nothing to find.
type clinic struct {
	service.Ledgers
	service.Gate
	service.Bookkeeper

	listing   sale.Listing
	err       error // of the ledgers
	figures   []sale.Figures
	placement map[string]int
	groups    map[string]int
	rulesErr  error
	tokens    map[string]time.Time
	stored    []sale.Toggle
}

func newClinic() *clinic {
	c := &clinic{
		listing: sale.Listing{
			SKU:    sale.SKU{ID: "demo", State: sale.Open, Slots: 2},
			Ledger: sale.Ledger{Epoch: 3, LiveEpoch: 3, Mode: sale.ModeRedis, State: sale.Steady, Total: 100, Promised: 10},
		},
		placement: map[string]int{"a": 11, "b": 11, "c": 10},
		groups:    map[string]int{"stockade.sale": 9, "others": 1},
		tokens:    map[string]time.Time{"ann": doctorNow.Add(1000 * time.Hour), "bob": {}},
	}
	for i, share := range sale.Shares(2) {
		c.figures = append(c.figures, sale.Figures{Share: share, Epoch: 3, Left: []int64{40, 40, 10}[i]})
	}
	return c
}

var doctorNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (c *clinic) Listing(_ context.Context, sku string) (sale.Listing, error) {
	if sku != c.listing.ID {
		return sale.Listing{}, sale.ErrNotFound
	}
	return c.listing, c.err
}

func (c *clinic) Listings(_ context.Context, after string, _ int) ([]sale.Listing, error) {
	if after != "" {
		return nil, c.err
	}
	return []sale.Listing{c.listing}, c.err
}

func (c *clinic) Peek(context.Context, string, int) ([]sale.Figures, error) {
	return slices.Clone(c.figures), nil
}

func (c *clinic) Uncredited(context.Context, string) (int64, error) { return 0, nil }

func (c *clinic) Placement(context.Context, string, int) (map[string]int, error) {
	return c.placement, nil
}

func (c *clinic) Groups(context.Context) (map[string]int, error) { return c.groups, c.rulesErr }

func (c *clinic) Toggles(context.Context) ([]sale.Toggle, error) { return c.stored, nil }
func (c *clinic) SetToggle(context.Context, sale.Toggle) error   { return nil }

func (c *clinic) ClearToggle(context.Context, string, string) error { return nil }

func (c *clinic) ends() map[string]time.Time { return c.tokens }
func (c *clinic) doctor(dependencies ...service.Diagnoser) *service.Doctor {
	now := func() time.Time { return doctorNow }
	toggles := service.NewToggles(service.ToggleParts{Store: c, Hints: noHints{}, Now: now, Log: slog.New(slog.DiscardHandler)})
	toggles.Load(context.Background())
	return service.NewDoctor(service.DoctorParts{
		Dependencies: dependencies, Ledgers: c, Placer: c, Toggles: toggles, Rules: c, Tokens: c.ends, Now: now,
		Conservation: service.NewConservation(service.ConservationParts{Ledgers: c, Gate: c, Books: c, Hints: noHints{}, Now: now, Log: slog.New(slog.DiscardHandler)}),
	})
}

func TestEveryTroubleOfAnInstallationIsFound(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*clinic)
		check  sale.Check
		want   sale.Level
		seen   string // a part of it
	}{
		"healthy":           {func(*clinic) {}, sale.CheckSKU, sale.LevelOK, "OPEN"},
		"not loaded":        {func(c *clinic) { c.listing.State = sale.Draft }, sale.CheckSKU, sale.LevelFail, "DRAFT"},
		"paused":            {func(c *clinic) { c.listing.State = sale.Paused }, sale.CheckSKU, sale.LevelWarn, "PAUSED"},
		"over":              {func(c *clinic) { c.listing.State = sale.Closed }, sale.CheckSKU, sale.LevelWarn, "CLOSED"},
		"past Redis":        {func(c *clinic) { c.listing.Ledger.Mode = sale.ModeMySQL }, sale.CheckSKU, sale.LevelWarn, "path mysql"},
		"MySQL down":        {func(c *clinic) { c.err = errors.New("refused") }, sale.CheckSKU, sale.LevelFail, "refused"},
		"uneven":            {func(c *clinic) { c.placement["c"] = 0 }, sale.CheckSharePlacement, sale.LevelWarn, "c 0"},
		"one master":        {func(c *clinic) { c.placement = map[string]int{"a": 32} }, sale.CheckSharePlacement, sale.LevelOK, "a 32"},
		"a share is gone":   {func(c *clinic) { c.figures[1].Gone = true }, sale.CheckShareStock, sale.LevelFail, "share 1 is gone"},
		"an old epoch":      {func(c *clinic) { c.figures[2].Epoch = 2 }, sale.CheckShareStock, sale.LevelFail, "epoch 2"},
		"sealed":            {func(c *clinic) { c.figures[0].Sealed = true }, sale.CheckShareStock, sale.LevelFail, "share 0"},
		"units are missing": {func(c *clinic) { c.figures[0].Left = 33 }, sale.CheckShareStock, sale.LevelFail, "7 units"},
		"too many units":    {func(c *clinic) { c.figures[0].Left = 41 }, sale.CheckShareStock, sale.LevelFail, "-1 units"},
		"undecided units":   {func(c *clinic) { c.figures[0].Left, c.figures[0].Pending = 35, 5 }, sale.CheckShareStock, sale.LevelOK, "pending 5"},
		"never laid out":    {func(c *clinic) { c.listing.Ledger.LiveEpoch = 2 }, sale.CheckShareStock, sale.LevelFail, "half-way"},
		"a reshare runs":    {func(c *clinic) { c.listing.Ledger.State = sale.Resharing }, sale.CheckShareStock, sale.LevelWarn, "under way"},
		"a toggle is set": {func(c *clinic) {
			c.stored = []sale.Toggle{{Name: sale.ToggleRelay, Value: sale.WorkPauses, Reason: "drill", Actor: "ann"}}
		}, sale.CheckToggles, sale.LevelWarn, "drill"},
		"no rules":        {func(c *clinic) { delete(c.groups, "stockade.sale") }, sale.CheckAlertRules, sale.LevelFail, "0 rules"},
		"no Prometheus":   {func(c *clinic) { c.rulesErr = errors.New("refused") }, sale.CheckAlertRules, sale.LevelFail, "refused"},
		"a token expired": {func(c *clinic) { c.tokens["ann"] = doctorNow }, sale.CheckAdminTokens, sale.LevelWarn, "expired"},
		"a token ends":    {func(c *clinic) { c.tokens["ann"] = doctorNow.Add(time.Hour) }, sale.CheckAdminTokens, sale.LevelWarn, "ends in 1h"},
		"no token":        {func(c *clinic) { c.tokens = nil }, sale.CheckAdminTokens, sale.LevelFail, "no admin token"},
	} {
		lab := newClinic()
		c.change(lab)
		e, err := lab.doctor().Examine(t.Context(), []string{"demo"})
		if err != nil {
			t.Fatal(err)
		}
		met := false
		for _, f := range e.Findings {
			want := sale.LevelOK
			if f.Check == c.check {
				want, met = c.want, strings.Contains(f.Seen, c.seen)
			}
			if f.Level != want || f.Runbook == "" || (f.Do == "") != (f.Level == sale.LevelOK) {
				t.Errorf("%s: %+v, want %s", what, f, want)
			}
		}
		if !met || e.Level != c.want {
			t.Errorf("%s: %+v, want %s %s with %q", what, e, c.check, c.want, c.seen)
		}
	}
}

// findings is a dependency that finds what it is.
type findings []sale.Finding

func (f findings) Diagnose(context.Context) []sale.Finding { return f }

// hanging is a dependency that answers when it is told to give up.
type hanging struct{}

func (hanging) Diagnose(ctx context.Context) []sale.Finding {
	<-ctx.Done()
	return []sale.Finding{sale.CheckRedisPing.Fail("a", ctx.Err().Error(), "do")}
}

func TestOneDeadDependencyHidesNoOther(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	lab := newClinic()
	alive := findings{sale.CheckMySQLPing.OK("mysql", "fine"), sale.CheckOutbox.Warn("", "old", "do")}
	e, err := lab.doctor(hanging{}, alive).Examine(ctx, nil)
	if err != nil || e.Level != sale.LevelFail {
		t.Fatalf("%+v, %v", e, err)
	}
	levels := map[sale.Check]sale.Level{}
	for _, f := range e.Findings {
		levels[f.Check] = f.Level
	}
	for check, want := range map[sale.Check]sale.Level{
		sale.CheckRedisPing: sale.LevelFail, sale.CheckMySQLPing: sale.LevelOK, sale.CheckOutbox: sale.LevelWarn,
		sale.CheckShareStock: sale.LevelOK, sale.CheckAlertRules: sale.LevelOK, sale.CheckToggles: sale.LevelOK,
	} {
		if levels[check] != want {
			t.Errorf("%s is %q, want %s", check, levels[check], want)
		}
	}
}

func TestWhatIsExamined(t *testing.T) {
	lab := newClinic()
	lab.listing.State = sale.Closed
	e, err := lab.doctor().Examine(t.Context(), nil)
	if err != nil || e.Level != sale.LevelOK {
		t.Errorf("a SKU whose sale is over is looked at unasked: %+v, %v", e, err)
	}
	if e, err = lab.doctor().Examine(t.Context(), []string{"other"}); err != nil || e.Level != sale.LevelFail {
		t.Errorf("an unknown SKU: %+v, %v", e, err)
	}
	var input *sale.InputError
	if _, err = lab.doctor().Examine(t.Context(), []string{"a/b"}); !errors.As(err, &input) {
		t.Errorf("an impossible SKU: %v", err)
	}
	if _, err = lab.doctor().Examine(t.Context(), make([]string, service.MaxDoctorSKUs+1)); !errors.As(err, &input) {
		t.Errorf("too many SKUs: %v", err)
	}
	quietly := service.NewDoctor(service.DoctorParts{
		Ledgers: lab, Placer: lab, Toggles: service.NewToggles(service.ToggleParts{Now: time.Now, Log: slog.New(slog.DiscardHandler)}),
		Tokens: lab.ends, Now: func() time.Time { return doctorNow },
	})
	e, err = quietly.Examine(t.Context(), nil)
	if err != nil || e.Level != sale.LevelWarn {
		t.Errorf("without monitoring: %+v, %v", e, err)
	}
}
