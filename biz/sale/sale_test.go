package sale_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stockade/biz/sale"
)

func TestLayoutLosesNothingAndIsEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		left := rapid.Int64Range(0, 10_000_000).Draw(t, "left")
		slots := rapid.IntRange(1, sale.MaxSlots).Draw(t, "slots")
		pct := rapid.IntRange(0, sale.MaxReservePct).Draw(t, "reserve %")
		layout := sale.Layout(left, slots, pct)
		if len(layout) != len(sale.Shares(slots)) {
			t.Fatalf("%d parts for %d shares", len(layout), len(sale.Shares(slots)))
		}
		var sum int64
		lo, hi := layout[0], layout[0]
		for i, n := range layout {
			if n < 0 {
				t.Fatalf("share %d gets %d units", i, n)
			}
			sum += n
			if i < slots {
				lo, hi = min(lo, n), max(hi, n)
			}
		}
		if sum != left {
			t.Fatalf("laid out %d of %d units", sum, left)
		}
		if hi-lo > 1 {
			t.Fatalf("slots differ by %d units", hi-lo)
		}
		if reserve := layout[slots] * 100; reserve < left*int64(pct) || reserve >= left*int64(pct)+100 {
			t.Fatalf("reserve has %d of %d units, want %d %% rounded up", layout[slots], left, pct)
		}
	})
}

func TestEveryHashHasAHome(t *testing.T) {
	for _, hash := range []uint64{0, 1, 1<<63 - 1, 1 << 63, 1<<64 - 1} { // a hash read as a signed number would be negative
		for slots := 1; slots <= sale.MaxSlots; slots++ {
			if home := sale.Home(hash, slots); home < 0 || int(home) >= slots {
				t.Errorf("Home(%d, %d) = %d", hash, slots, home)
			}
		}
	}
}

func TestAutoSlotsKeepAboutFiftyUnits(t *testing.T) {
	for total, want := range map[int64]int{1: 1, 49: 1, 99: 1, 100: 2, 500: 10, 1600: 32, 1_000_000: 32} {
		if got := sale.SlotsFor(total); got != want {
			t.Errorf("SlotsFor(%d) = %d, want %d", total, got, want)
		}
	}
}

func TestDerivedOrderIDs(t *testing.T) {
	id := sale.DeriveOrderID("demo", "u1", "k1")
	if id != sale.DeriveOrderID("demo", "u1", "k1") {
		t.Error("the same request got two ids")
	}
	if s := id.String(); s[14] != '8' || !strings.ContainsRune("89ab", rune(s[19])) {
		t.Errorf("%s is not a version 8 UUID", s)
	}
	// The parts must not run into each other.
	seen := map[sale.OrderID]string{id: "demo u1 k1"}
	for _, parts := range [][3]string{{"demou", "1", "k1"}, {"demo", "u1k", "1"}, {"demo", "u", "1k1"}, {"", "demou1", "k1"}, {"demo", "u1", ""}} {
		other := sale.DeriveOrderID(parts[0], parts[1], parts[2])
		if was, taken := seen[other]; taken {
			t.Errorf("%v and %s share an id", parts, was)
		}
		seen[other] = strings.Join(parts[:], " ")
	}
}

func TestOrderIDsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var id sale.OrderID
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		for _, text := range []string{id.String(), strings.ToUpper(id.String())} {
			if back, err := sale.ParseOrderID(text); err != nil || back != id {
				t.Fatalf("%s reads back as %s, %v", text, back, err)
			}
		}
	})
	for _, bad := range []string{
		"", "x", strings.Repeat("0", 36), "{0198a000-0000-7000-8000-000000000000}",
		"0198a000-0000-7000-8000-00000000000g", "0198a0000000-7000-8000-000000000000-", "urn:uuid:0198a000-0000-7000-8000-000000000000",
	} {
		_, err := sale.ParseOrderID(bad)
		var input *sale.InputError
		if !errors.As(err, &input) || input.Field != "order_id" {
			t.Errorf("ParseOrderID(%q): %v, want an InputError for order_id", bad, err)
		}
	}
}

func TestWindow(t *testing.T) {
	opens := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	sku := sale.SKU{State: sale.Open, OpensAt: opens, ClosesAt: opens.Add(time.Hour)}
	for _, c := range []struct {
		state sale.SKUState
		at    time.Duration
		want  sale.Reason
	}{
		{sale.Open, -time.Millisecond, sale.ReasonNotStarted},
		{sale.Open, 0, ""},
		{sale.Open, time.Hour - time.Millisecond, ""},
		{sale.Open, time.Hour, sale.ReasonEnded},
		{sale.Draft, 0, sale.ReasonNotStarted},
		{sale.Loaded, 0, sale.ReasonNotStarted},
		{sale.Paused, 0, sale.ReasonPaused},
		{sale.Paused, -time.Hour, sale.ReasonPaused},
		{sale.Closed, 0, sale.ReasonEnded},
		{sale.ClosedOut, 0, sale.ReasonEnded},
	} {
		sku.State = c.state
		if got, on := sku.Window(opens.Add(c.at)); got != c.want || on != (c.want == "") {
			t.Errorf("%s at %v: %q, %v; want %q", c.state, c.at, got, on, c.want)
		}
	}
	sku.State, sku.ClosesAt = sale.Open, time.Time{}
	if _, on := sku.Window(opens.Add(1000 * time.Hour)); !on {
		t.Error("a SKU without closes_at closed")
	}
}

func TestValidateNamesTheField(t *testing.T) {
	good := sale.SKU{ID: "demo", Limit: 2, Slots: 32, ReservePct: 5, PaymentWindow: time.Minute}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for field, spoil := range map[string]func(*sale.SKU){
		"sku":            func(s *sale.SKU) { s.ID = "a{b}" },
		"limit":          func(s *sale.SKU) { s.Limit = 0 },
		"slots":          func(s *sale.SKU) { s.Slots = 33 },
		"reserve_pct":    func(s *sale.SKU) { s.ReservePct = 51 },
		"payment_window": func(s *sale.SKU) { s.PaymentWindow = 0 },
		"closes_at":      func(s *sale.SKU) { s.OpensAt = time.Unix(2, 0); s.ClosesAt = time.Unix(1, 0) },
	} {
		bad := good
		spoil(&bad)
		var input *sale.InputError
		if err := bad.Validate(); !errors.As(err, &input) || input.Field != field {
			t.Errorf("spoiled %s: %v", field, err)
		}
	}
}

func TestStatesMoveOnlyForward(t *testing.T) {
	reach := func(to, from sale.SKUState) bool {
		for _, s := range to.MayBecome() {
			if s == from {
				return true
			}
		}
		return false
	}
	for _, dead := range []sale.SKUState{sale.Closed, sale.ClosedOut} {
		for _, to := range []sale.SKUState{sale.Draft, sale.Loaded, sale.Open, sale.Paused} {
			if reach(to, dead) {
				t.Errorf("%s may come back to %s", dead, to)
			}
		}
	}
	if !reach(sale.Open, sale.Paused) || !reach(sale.Paused, sale.Open) || reach(sale.Open, sale.Draft) {
		t.Error("OPEN ⇄ PAUSED, and DRAFT cannot open unloaded")
	}
}

func TestBooksAgree(t *testing.T) {
	good := sale.Books{Total: 10, Promised: 10, LiveUnits: 10, LiveOrders: 6, Orders: 5, Missing: 1}
	if !good.Agree() {
		t.Error("an order on its way is no disagreement")
	}
	for what, spoil := range map[string]func(*sale.Books){
		"promised twice":     func(b *sale.Books) { b.Promised++ },
		"oversold":           func(b *sale.Books) { b.Total-- },
		"paid and not sold":  func(b *sale.Books) { b.PaidUnits++ },
		"sold beyond":        func(b *sale.Books) { b.Sold, b.PaidUnits = b.Promised+1, b.Promised+1 },
		"a stranger":         func(b *sale.Books) { b.Strangers++ },
		"a buyer over limit": func(b *sale.Books) { b.OverLimit++ },
	} {
		bad := good
		spoil(&bad)
		if bad.Agree() {
			t.Errorf("%s: the books agree", what)
		}
	}
}

func TestSKUIDsHaveTheFormThatMessagesName(t *testing.T) {
	pattern := regexp.MustCompile("^" + sale.SKUIDPattern + "$")
	ids := []string{"ä", "a\n"}
	for n := range sale.MaxSKUID + 3 {
		ids = append(ids, strings.Repeat("a", n))
	}
	for b := range 256 {
		one := string([]byte{byte(b)})
		ids = append(ids, one, one+"a", "a"+one)
	}
	for _, id := range ids {
		if got, want := sale.ValidSKUID(id), pattern.MatchString(id); got != want {
			t.Errorf("ValidSKUID(%q) = %v, want %v", id, got, want)
		}
	}
}
