package mqtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/mq"
)

// deliverOrders publishes orders as one envelope.
func (b *bench) deliverOrders(orders []sale.Order) {
	b.Helper()
	body, err := mq.EncodeEnvelope(orders)
	if err != nil {
		b.Fatal(err)
	}
	b.deliver(mq.EnvelopeType, body)
}

// without leaves one order out.
func without(all []sale.Order, bad sale.Order) []sale.Order {
	return slices.DeleteFunc(slices.Clone(all), func(o sale.Order) bool { return o == bad })
}

// retryTiersInTurn: a poison event waits in each tier in turn, its 99 companions do not, and each message tells how often
// it was tried and why it failed.
func retryTiersInTurn(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, func(c *mq.Config) { c.Retry1Ms, c.Retry2Ms, c.Retry3Ms = 150, 300, 450 })
	all := b.orders(100)
	bad := all[b.rng.IntN(100)]
	b.store.Refuse(ForEver, bad)
	b.consumers()
	b.dead()
	b.deliverOrders(all)
	b.await("buried", func() bool { return len(b.office.Letters()) == 1 })

	tries := b.store.Tries(bad.ID)
	if len(tries) != 4 {
		t.Fatalf("tried %d times, want once and once after each tier", len(tries))
	}
	for i, wait := range []time.Duration{150 * time.Millisecond, 300 * time.Millisecond, 450 * time.Millisecond} {
		if got := tries[i+1].At.Sub(tries[i].At); got < wait {
			t.Errorf("tier %d held it for %v, want at least %v", i+1, got, wait)
		}
		if tries[i].Written != 99 {
			t.Errorf("at try %d of the poison event %d of its 99 companions were written", i+1, tries[i].Written)
		}
	}
	for i, key := range append(b.names.Retry[:], b.names.Dead) {
		sent := b.sent(key)
		if len(sent) != 1 {
			t.Fatalf("%d messages to %s", len(sent), key)
		}
		want := map[string]string{
			mq.HeaderAttempt: strconv.Itoa(min(i+1, 3)), mq.HeaderError: ErrPoison.Error(), mq.HeaderSource: b.names.Create,
		}
		if h := sent[0].Headers; fmt.Sprint(h) != fmt.Sprint(want) || sent[0].ID != bad.ID.String() {
			t.Errorf("%s: message %s with headers %v, want %v", key, sent[0].ID, h, want)
		}
	}
	b.await("counted", func() bool { return b.counters.Snapshot().Refused == 1 }) // it may be buried before its confirm
	if s := b.counters.Snapshot(); s.Retried != 3 || s.Undecodable != 0 {
		t.Errorf("%+v", s)
	}
	if err := b.store.Check(without(all, bad)); err != nil {
		t.Fatal(err)
	}
}

// retrySucceeds: an event that could not be written for a while is written, and is no dead letter.
func retrySucceeds(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, untuned)
	all := b.orders(30)
	b.store.Refuse(1, all[3])
	b.store.Refuse(3, all[4])
	b.consumers()
	b.dead()
	b.deliverOrders(all)
	b.await("all written", func() bool { return b.store.Written() == 30 })
	if err := b.store.Check(all); err != nil {
		t.Fatal(err)
	}
	if s := b.counters.Snapshot(); s.Retried != 4 || s.Refused+s.Buried != 0 {
		t.Fatalf("%+v", s)
	}
}

// unreadableAmongGood: an event that cannot be read does not take the others with it, and its letter names its order.
func unreadableAmongGood(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, untuned)
	good := b.orders(99)
	bad := NewOrder(b.rng, 1_000_000)
	bad.Quantity = 7_654_321
	body, err := mq.EncodeEnvelope(slices.Insert(slices.Clone(good), 40, bad))
	if err != nil {
		t.Fatal(err)
	}
	broken := strings.Replace(string(body), "7654321", `"many"`, 1)
	b.consumers()
	b.dead()
	b.deliver(mq.EnvelopeType, []byte(broken))
	b.await("good orders written", func() bool { return b.store.Written() == len(good) })
	b.await("buried", func() bool { return len(b.office.Letters()) == 1 })
	letter := b.office.Letters()[bad.ID.String()]
	if letter.Order == nil || *letter.Order != bad.ID || letter.SKU != bad.SKU || !strings.Contains(string(letter.Body), `"many"`) {
		t.Fatalf("%+v", b.office.Letters())
	}
	if err := b.store.Check(good); err != nil {
		t.Fatal(err)
	}
}

// lettersOnce: whatever is delivered twice, cut or refused by the burial, each poison event is one letter that says what
// it is, and none is forgotten.
func lettersOnce(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, untuned)
	b.broker.Duplicate(true)
	b.office.SetDown(true)
	all := b.orders(200)
	bad := []sale.Order{all[5], all[77], all[150]}
	b.store.Refuse(ForEver, bad...)
	b.consumers()
	b.dead()
	b.deliverOrders(all[:100])
	b.deliverOrders(all[100:])
	b.deliver("text/odd", []byte("nonsense"))
	b.await("burials refused", func() bool { return b.office.Refusals() >= 3 })
	b.broker.Cut()
	refusals := b.office.Refusals()
	b.await("burials refused again", func() bool { return b.office.Refusals() > refusals })
	if s := b.counters.Snapshot(); s.Buried != 0 {
		t.Fatalf("acked before it was buried: %+v", s)
	}
	b.office.SetDown(false)
	b.await("letters", func() bool { return len(b.office.Letters()) == 4 })
	b.await("repetitions", func() bool { return b.office.Buried() >= 8 })
	letters := b.office.Letters()
	for _, o := range bad {
		l := letters[o.ID.String()]
		got, err := mq.DecodeEnvelope(l.ContentType, l.Body)
		if err != nil || len(got) != 1 || got[0] != o {
			t.Errorf("letter of %s holds %v, %v", o.ID, got, err)
		}
		if l.Order == nil || *l.Order != o.ID || l.SKU != o.SKU || l.Error != ErrPoison.Error() || l.Source != b.names.Create ||
			l.State != sale.DeadOpen {
			t.Errorf("letter %+v", l)
		}
	}
	if l := letters["test"]; string(l.Body) != "nonsense" || l.ContentType != "text/odd" || l.Order != nil || l.Error == "" {
		t.Errorf("letter %+v", l)
	}
	if changed := b.office.Changed(); len(changed) > 0 {
		t.Error(changed)
	}
}

// replayIsIdempotent: a replayed letter goes through every tier again, and is one order however often it is replayed.
func replayIsIdempotent(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, untuned)
	all := b.orders(10)
	b.store.Refuse(ForEver, all[2])
	b.consumers()
	b.dead()
	b.deliverOrders(all)
	b.await("buried", func() bool { return b.office.Buried() == 1 })
	letter := b.office.Letters()[all[2].ID.String()]
	replayer := mq.NewReplayer(b.lab.Config, b.broker)

	b.broker.Sleep(true)
	if err := replayer.Replay(context.Background(), letter); !errors.Is(err, sale.ErrUnavailable) {
		t.Fatalf("replayed to a broker that is away: %v", err)
	}
	b.broker.Sleep(false)
	if err := replayer.Replay(context.Background(), letter); err != nil {
		t.Fatal(err)
	}
	b.await("buried again", func() bool { return b.office.Buried() == 2 })
	if n := len(b.store.Tries(all[2].ID)); n != 8 || len(b.office.Letters()) != 1 {
		t.Fatalf("%d tries, want 4 before the replay and 4 after; %d letters", n, len(b.office.Letters()))
	}

	b.store.Refuse(0, all[2])
	inserts := b.store.Inserts()
	for range 3 {
		if err := replayer.Replay(context.Background(), letter); err != nil {
			t.Fatal(err)
		}
	}
	b.await("handed over three times", func() bool { return b.store.Inserts() == inserts+3 })
	if err := b.store.Check(all); err != nil {
		t.Fatal(err)
	}
	if changed := b.office.Changed(); len(changed) > 0 {
		t.Error(changed)
	}
}

// hugeLetter: a letter is cut to what a store can keep, and does not become readable by that.
func hugeLetter(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, untuned)
	b.consumers()
	b.dead()
	b.deliver(mq.EnvelopeType, []byte(strings.Repeat(" ", 3<<20)))
	b.await("buried", func() bool { return b.office.Buried() == 1 })
	for _, l := range b.office.Letters() {
		if _, err := mq.DecodeEnvelope(l.ContentType, l.Body); err == nil || len(l.Body) > mq.MaxEnvelopeBytes+1 {
			t.Fatalf("%d bytes, %v", len(l.Body), err)
		}
		if !strings.Contains(l.Error, "3145728 bytes was cut off") {
			t.Fatalf("error %q does not tell", l.Error)
		}
	}
}

// tierFull: poison events that a tier does not take stay unacked, and get their turn when it has room. What comes out of
// a tier meets a full order queue now and then, where a classic queue loses it: the outbox brings it back.
func tierFull(t *testing.T, newLab NewLab) {
	b := setUp(t, newLab, func(c *mq.Config) { c.QueueMaxMessages, c.Retry1Ms, c.OutboxRecheckAfterMs = 3, 300, 1000 })
	all := b.orders(16)
	b.store.Refuse(ForEver, all[:8]...)
	b.consumers()
	b.dead()
	b.relay().Offer(slices.Clone(all))
	b.await("refused by the tier", func() bool { return b.counters.Snapshot().Rejected > 0 })
	b.await("letters", func() bool { return len(b.office.Letters()) == 8 })
	if err := b.store.Check(all[8:]); err != nil {
		t.Fatal(err)
	}
}
