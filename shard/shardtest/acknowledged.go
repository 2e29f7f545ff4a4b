package shardtest

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"stockade/biz/sale"
)

// marked asks with the mark.
func (b *bench) marked(buyer string) sale.AdmitRequest {
	r := b.request(buyer)
	r.Acknowledge = true
	return r
}

func testAcknowledged(t *testing.T, b *bench) {
	b.lay(0, 1, 10)
	marks := map[sale.OrderID]bool{}
	for i := range 8 {
		r := b.request(odd(i))
		r.Acknowledge = i%2 == 0
		if a := b.admit(r, sale.Admitted); a.Acknowledged {
			t.Fatalf("only a known take tells of its mark: %+v", a)
		}
		r.Acknowledge = false // a repetition without it takes nothing away
		if a := b.admit(r, sale.Known); a.Acknowledged != (i%2 == 0) || a.Decided {
			t.Fatalf("take %d is known as %+v", i, a)
		}
		marks[r.Order] = i%2 == 0
	}
	b.expect(0, 2, 8)
	overdue, err := b.gate.Overdue(t.Context(), b.sku, 0, 0, 100)
	b.must(err)
	b.credit(b.request("zoe"), 1, true) // and other scripts pass the marks by
	sealed := b.seal(0, 2, 100)
	for _, takes := range [][]sale.PendingTake{overdue, sealed.Pending} {
		if len(takes) != len(marks) {
			t.Fatalf("%d undecided takes, want %d", len(takes), len(marks))
		}
		for _, take := range takes {
			if take.Acknowledged != marks[take.Order] {
				t.Fatalf("take %+v, acknowledged %t", take, marks[take.Order])
			}
		}
	}
	// The mark outlives a reshare that died: the next one finds it.
	for _, take := range b.seal(0, 3, 100).Pending {
		if take.Acknowledged != marks[take.Order] {
			t.Fatalf("take %+v, acknowledged %t", take, marks[take.Order])
		}
	}
}

// testMarkedLater asks for the mark when the take is there already.
func testMarkedLater(t *testing.T, b *bench) {
	b.lay(0, 1, 10)
	r := b.request("ann")
	first := b.admit(r, sale.Admitted)
	other := b.request("bob")
	b.admit(other, sale.Admitted)
	r.Acknowledge = true
	for range 2 {
		a := b.admit(r, sale.Known)
		if !a.Acknowledged || a.Decided || a.Token != first.Token || a.Quantity != 1 || a.Changes != first.Changes+1 {
			t.Fatalf("marked as %+v, admitted as %+v", a, first)
		}
	}
	if a := b.admit(other, sale.Known); a.Acknowledged {
		t.Fatalf("another take was marked: %+v", a)
	}
	b.expect(0, 8, 2)

	decided := map[bool]sale.AdmitRequest{true: b.request("cid"), false: b.request("dan")}
	for kept, d := range decided {
		b.settle(settled(d, b.admit(d, sale.Admitted), kept))
	}
	d := decided[true]
	d.Acknowledge = true
	before := b.dump(0)
	if a := b.admit(d, sale.Known); a.Acknowledged || !a.Decided {
		t.Fatalf("a decided take was marked: %+v", a)
	}
	if after := b.dump(0); after != before {
		t.Fatalf("a decided take was changed:\n%s\n%s", before, after)
	}
	stale := decided[false]
	stale.Acknowledge, stale.Epoch = true, 2
	b.admit(stale, sale.Stale)
	again := decided[false] // taken anew, and marked at once
	again.Acknowledge = true
	b.admit(again, sale.Admitted)
	if a := b.admit(again, sale.Known); !a.Acknowledged {
		t.Fatalf("taken anew: %+v", a)
	}
}

// testAcknowledgedEnds decides marked takes in every way.
func testAcknowledgedEnds(t *testing.T, b *bench) {
	b.lay(0, 1, 10)
	kept, dropped, closed := b.marked("ann"), b.marked("bob"), b.marked("cid")
	told, toldOff := b.marked("dan"), b.marked("eve")
	ka, da := b.admit(kept, sale.Admitted), b.admit(dropped, sale.Admitted)
	for _, r := range []sale.AdmitRequest{closed, told, toldOff} {
		b.admit(r, sale.Admitted)
	}
	b.expect(0, 5, 5)
	b.settle(settled(kept, ka, true), settled(dropped, da, false))
	b.expect(0, 6, 3)
	b.credit(closed, 1, true)
	b.expect(0, 7, 2)
	page := b.seal(0, 2, 10)
	if len(page.Pending) != 2 {
		t.Fatalf("undecided %+v", page.Pending)
	}
	b.conflict(b.gate.OpenAll(t.Context(), b.sku, []sale.Share{0}, 2, []int64{7}))
	b.must(b.gate.Tell(t.Context(), b.sku, 0, 2, page.Pending[:1], page.Pending[1:]))
	b.must(b.gate.OpenAll(t.Context(), b.sku, []sale.Share{0}, 2, []int64{8}))
	for _, r := range []sale.AdmitRequest{kept, closed, told} {
		r.Epoch = 2
		if a := b.admit(r, sale.Known); a.Acknowledged || !a.Decided {
			t.Fatalf("%s's decided take %+v", r.Buyer, a)
		}
	}
	for _, r := range []sale.AdmitRequest{dropped, toldOff} {
		r.Epoch, r.Quantity = 2, 9
		r.Limit = 9
		if a := b.admit(r, sale.Empty); !a.Doubtful {
			t.Fatalf("%s's dropped take %+v", r.Buyer, a)
		}
	}
}

// testLateDrop has a drop arrive that was decided before its take was marked.
func testLateDrop(t *testing.T, b *bench) {
	b.lay(0, 1, 10)
	plain, late := b.request("ann"), b.request("bob")
	plainDrop := settled(plain, b.admit(plain, sale.Admitted), false)
	lateDrop := settled(late, b.admit(late, sale.Admitted), false)
	plainDrop.Unmarked, lateDrop.Unmarked = true, true
	late.Acknowledge = true // another node tells its buyer ACCEPTED
	b.admit(late, sale.Known)
	marked := b.dump(0)
	b.settle(lateDrop)
	if after := b.dump(0); after != marked {
		t.Fatalf("an acknowledged take was dropped by one who saw no mark:\n%s\n%s", marked, after)
	}
	b.settle(lateDrop, plainDrop)
	b.expect(0, 9, 1)
	if a := b.admit(late, sale.Known); !a.Acknowledged {
		t.Fatalf("the mark is gone: %+v", a)
	}
	overdue, err := b.gate.Overdue(t.Context(), b.sku, 0, 0, 100)
	if err != nil || len(overdue) != 1 || overdue[0].Order != late.Order {
		t.Fatalf("the journal holds %+v, %v: want the acknowledged take", overdue, err)
	}
	lateDrop.Unmarked = false // decided with the mark in sight
	b.settle(lateDrop)
	b.expect(0, 10, 0)
}

func testHeld(t *testing.T, b *bench) {
	absent := func(share sale.Share, id sale.OrderID) {
		t.Helper()
		if take, err := b.gate.Held(t.Context(), b.sku, share, id); !errors.Is(err, sale.ErrNotFound) {
			t.Fatalf("held %+v, %v", take, err)
		}
	}
	absent(0, b.id())
	b.lay(0, 1, 10)
	b.lay(1, 1, 10)
	r, kept := b.marked("ann"), b.request("bob")
	r.Quantity = 2
	token := b.admit(r, sale.Admitted).Token
	b.settle(settled(kept, b.admit(kept, sale.Admitted), true))
	absent(0, b.id())
	absent(0, kept.Order)
	absent(1, r.Order)
	for _, epoch := range []int64{1, 2} {
		if epoch == 2 {
			b.seal(0, 2, 10)
		}
		take, err := b.gate.Held(t.Context(), b.sku, 0, r.Order)
		want := sale.PendingTake{Order: r.Order, Buyer: "ann", Quantity: 2, Token: token, Acknowledged: true, Age: take.Age}
		if err != nil || take != want || take.Age < 0 || take.Age > time.Hour {
			t.Fatalf("held %+v, want %+v: %v", take, want, err)
		}
	}
	var bad *sale.InputError
	if _, err := b.gate.Held(t.Context(), b.sku, sale.MaxSlots, r.Order); !errors.As(err, &bad) {
		t.Fatalf("an impossible share: %v", err)
	}
}

// testStrays plants ids in the journal that have nothing undecided. Whoever settles what the journal lists ends them.
func testStrays(t *testing.T, b *bench) {
	b.lay(0, 1, 10)
	kept, doubtful, open := b.request("ann"), b.request("bob"), b.request("cid")
	b.settle(settled(kept, b.admit(kept, sale.Admitted), true))
	b.settle(settled(doubtful, b.admit(doubtful, sale.Admitted), false))
	b.admit(open, sale.Admitted)
	clean := b.dump(0)
	for _, id := range []sale.OrderID{kept.Order, doubtful.Order, b.id()} {
		b.must(b.raw.ZAdd(t.Context(), b.key(0, "journal"), redis.Z{Score: 1, Member: string(id[:])}).Err())
	}
	takes, err := b.gate.Overdue(t.Context(), b.sku, 0, 0, 100)
	if err != nil || len(takes) != 4 {
		t.Fatalf("journal %+v, %v", takes, err)
	}
	for _, take := range takes {
		if take.Order == open.Order {
			continue
		}
		b.settle(sale.Settlement{
			SKU: b.sku, Order: take.Order, Buyer: take.Buyer, Quantity: take.Quantity, Token: take.Token,
		})
	}
	if after := b.dump(0); after != clean {
		t.Fatalf("strays were settled, and left:\n%s\nwant\n%s", after, clean)
	}
}
