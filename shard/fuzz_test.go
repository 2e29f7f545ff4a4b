package shard

import (
	"encoding/binary"
	"strconv"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"stockade/biz/sale"
)

// unpacked reads packed rows the way the scripts' headers describe them.
type unpacked struct {
	t    *testing.T
	rest []byte
}

func (u *unpacked) bytes(n int) []byte {
	if len(u.rest) < n {
		u.t.Fatalf("%d bytes are left where %d were expected", len(u.rest), n)
	}
	b := u.rest[:n]
	u.rest = u.rest[n:]
	return b
}

func (u *unpacked) byte() int     { return int(u.bytes(1)[0]) }
func (u *unpacked) number() int64 { return int64(binary.BigEndian.Uint16(u.bytes(2))) }

// expect compares what was read with what was packed.
func expect[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: unpacked %v, packed %v", what, got, want)
	}
}

// FuzzPackRows packs two rows of every kind one behind the other, as a batch has them, and reads them back.
func FuzzPackRows(f *testing.F) {
	f.Add([]byte("0123456789abcdef"), uint16(1), uint16(2), int64(1), int64(1), "ann", true)
	f.Add([]byte{}, uint16(1000), uint16(1000), int64(maxNumber), int64(maxNumber), "\xff {}\x00", false)
	f.Fuzz(func(t *testing.T, rawID []byte, q, l uint16, epoch, change int64, buyer string, yes bool) {
		var id sale.OrderID
		copy(id[:], rawID)
		quantity, limit := int64(q%sale.MaxQuantity)+1, int64(l%sale.MaxQuantity)+1
		token := sale.Token{Epoch: max(epoch, 0), Change: max(change, 0)}
		if checkTake(buyer, quantity) != nil {
			return
		}
		text := string(appendToken(nil, token))
		admit := sale.AdmitRequest{Order: id, Quantity: quantity, Limit: limit, Buyer: buyer, Acknowledge: yes}
		settle := sale.Settlement{Order: id, Token: token, Kept: yes, Unmarked: change%2 == 0}
		want := endDropped
		switch {
		case yes:
			want = endKept
		case settle.Unmarked:
			want = endDroppedUnmarked
		}
		credit := sale.Credit{Order: id, Quantity: quantity, Buyer: buyer, Counted: quantity%2 == 0}
		fill := sale.Holding{Order: id, Quantity: quantity, Closed: yes, Token: token, Buyer: buyer}
		mark := int(flag(yes))

		u := &unpacked{t, packAdmit(packAdmit(nil, &admit), &admit)}
		for range 2 {
			expect(t, "admit id", sale.OrderID(u.bytes(16)), id)
			expect(t, "admit quantity", u.number(), quantity)
			expect(t, "admit limit", u.number(), limit)
			expect(t, "admit mark", u.byte(), mark)
			expect(t, "admit buyer", string(u.bytes(u.byte())), buyer)
		}
		expect(t, "rest of admit", len(u.rest), 0)
		u = &unpacked{t, packSettle(packSettle(nil, &settle), &settle)}
		for range 2 {
			expect(t, "settle id", sale.OrderID(u.bytes(16)), id)
			expect(t, "settle ending", u.byte(), want)
			expect(t, "settle token", string(u.bytes(u.byte())), text)
		}
		expect(t, "rest of settle", len(u.rest), 0)
		u = &unpacked{t, packCredit(packCredit(nil, &credit), &credit)}
		for range 2 {
			expect(t, "credit id", sale.OrderID(u.bytes(16)), id)
			expect(t, "credit quantity", u.number(), quantity)
			expect(t, "credit counted", u.byte() == 1, credit.Counted)
			expect(t, "credit buyer", string(u.bytes(u.byte())), buyer)
		}
		expect(t, "rest of credit", len(u.rest), 0)
		u = &unpacked{t, packTell(nil, id, yes)}
		expect(t, "tell id", sale.OrderID(u.bytes(16)), id)
		expect(t, "tell kept", u.byte(), mark)
		expect(t, "rest of tell", len(u.rest), 0)
		u = &unpacked{t, packFill(packFill(nil, &fill), &fill)}
		for range 2 {
			expect(t, "fill id", sale.OrderID(u.bytes(16)), id)
			expect(t, "fill quantity", u.number(), quantity)
			expect(t, "fill closed", u.byte(), mark)
			tokenLen, buyerLen := u.byte(), u.byte()
			expect(t, "fill token", string(u.bytes(tokenLen)), text)
			expect(t, "fill buyer", string(u.bytes(buyerLen)), buyer)
		}
		expect(t, "rest of fill", len(u.rest), 0)
	})
}

// FuzzParseEntry reads anything; what it accepts means the same when it is written again.
func FuzzParseEntry(f *testing.F) {
	for _, value := range []string{"p1 1.2 ann", "a3 99.1 two words", "k1000 7.7 ", "d", "", "c1 1 x", "p-1 +1.2 b"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		e, err := parseEntry(value)
		if err != nil {
			return
		}
		again := string(e.state) + strconv.FormatInt(e.quantity, 10) + " " + string(appendToken(nil, e.token)) + " " + e.buyer
		if e.state > 127 {
			return // not a letter that a script writes, and string makes two bytes of it
		}
		if back, err := parseEntry(again); err != nil || back != e {
			t.Fatalf("%q is %+v, and written again %q is %+v: %v", value, e, again, back, err)
		}
	})
}

// FuzzBatches gives the scripts batches that nobody packed: they refuse them before they write, or leave figures that a
// share can have.
func FuzzBatches(f *testing.F) {
	scripts := []*script{admitScript, settleScript, creditScript, tellScript, fillScript}
	admit := sale.AdmitRequest{Order: sale.OrderID{1}, Quantity: 1, Limit: 2, Buyer: "ann"}
	other := sale.AdmitRequest{Order: sale.OrderID{2}, Quantity: 2, Limit: 3, Buyer: "bob", Acknowledge: true}
	for i := range scripts {
		f.Add(byte(i), packAdmit(packAdmit(nil, &admit), &other))
	}
	f.Add(byte(1), packSettle(nil, &sale.Settlement{Order: admit.Order, Token: sale.Token{Epoch: 1, Change: 2}}))
	f.Add(byte(2), packCredit(nil, &sale.Credit{Order: admit.Order, Quantity: 1, Buyer: "ann"}))
	f.Add(byte(3), packTell(nil, admit.Order, true))
	f.Add(byte(4), packFill(nil, &sale.Holding{Order: admit.Order, Quantity: 1, Buyer: "ann"}))
	f.Add(byte(2), []byte{})
	m := miniredis.RunT(f)
	cfg := DefaultConfig()
	cfg.Addresses = []string{m.Addr()}
	cfg.IOTimeoutMs, cfg.FlushTimeoutMs = 10_000, 10_000
	gate, err := Open(f.Context(), cfg)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = gate.Close() })
	m.SetTime(time.UnixMilli(1_000_000))
	f.Fuzz(func(t *testing.T, which byte, batch []byte) {
		if len(batch) > 50_000 {
			return
		}
		ctx, s := t.Context(), scripts[int(which)%len(scripts)]
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		m.FlushDB()
		_, err := gate.Seal(ctx, "demo", 0, 1, 1)
		must(err)
		must(gate.OpenAll(ctx, "demo", []sale.Share{0}, 1, []int64{5}))
		for _, r := range []sale.AdmitRequest{admit, other} {
			r.SKU, r.Epoch = "demo", 1
			_, err = gate.Admit(ctx, r)
			must(err)
		}
		epoch := 1
		if s == tellScript || s == fillScript {
			epoch = 2
			_, err := gate.Seal(ctx, "demo", 0, 2, 1)
			must(err)
		}
		k, err := gate.keys.of("demo", 0)
		must(err)
		before := m.Dump()
		args := []any{epoch, batch}
		if s == settleScript {
			args = args[1:]
		}
		if _, err := gate.runInts(ctx, s, k, args...); err != nil {
			if after := m.Dump(); after != before {
				t.Fatalf("%s failed and wrote: %v\n%s\n%s", s.name, err, before, after)
			}
			return
		}
		figures, err := gate.Peek(ctx, "demo", 1)
		must(err)
		for _, n := range []int64{figures[0].Left, figures[0].Pending, figures[0].Short, figures[0].Changes} {
			if n < 0 {
				t.Fatalf("%s made %+v", s.name, figures[0])
			}
		}
	})
}
