// Package shardtest is the suite that the gate passes on every kind of Redis.
package shardtest

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"stockade/biz/sale"
	"stockade/shard"
)

// Run holds the gate to its contract on the Redis at this address. Tests keep to their own key prefixes, so they may
// share a server.
func Run(t *testing.T, address string) {
	run(t, address, false, contract)
	run(t, address, false, faults)
}

// RunCluster is Run on the cluster that the node at this address belongs to, without the faults on the way to Redis:
// the client finds the nodes' addresses by itself.
func RunCluster(t *testing.T, address string) { run(t, address, true, contract) }

type test struct {
	name string
	run  func(*testing.T, *bench)
}

var contract = []test{
	{"Verdicts", testVerdicts},
	{"Limit", testLimit},
	{"Settle", testSettle},
	{"Doubtful", testDoubtful},
	{"ShortEnds", testShortEnds},
	{"Strays", testStrays},
	{"Acknowledged", testAcknowledged},
	{"MarkedLater", testMarkedLater},
	{"AcknowledgedEnds", testAcknowledgedEnds},
	{"LateDrop", testLateDrop},
	{"Held", testHeld},
	{"Credit", testCredit},
	{"CreditBulk", testCreditBulk},
	{"Seal", testSeal},
	{"Full", testFull},
	{"Open", testOpen},
	{"Drop", testDrop},
	{"SlotCounts", testSlotCounts},
	{"Overdue", testOverdue},
	{"Winners", testWinners},
	{"WinnersLeftOut", testWinnersLeftOut},
	{"Identity", testIdentity},
	{"LastUnit", testLastUnit},
	{"SettleLater", testSettleLater},
	{"Model", testModel},
	{"NotSent", testNotSent},
	{"NoScript", testNoScript},
	{"BadInput", testBadInput},
}

// faults spoil the way between gate and Redis.
var faults = []test{
	{"Batch", testBatch},
	{"Hints", testHints},
	{"LostReply", testLostReply},
	{"CreditLost", testCreditLost},
	{"CreditPassesLanes", testCreditPassesLanes},
	{"LateReply", testLateReply},
	{"CallersGone", testCallersGone},
	{"Breaker", testBreaker},
}

func run(t *testing.T, address string, cluster bool, tests []test) {
	for _, one := range tests {
		t.Run(one.name, func(t *testing.T) { one.run(t, newBench(t, address, cluster)) })
	}
}

const (
	patient      = 20_000 // ms: on a busy machine only a hang is a failure
	patientForIt = patient * time.Millisecond
)

var prefixes atomic.Int64

// bench is one test's corner of a Redis.
type bench struct {
	*testing.T
	address string
	prefix  string
	sku     string
	gate    *shard.Gate
	cluster bool
	raw     redis.UniversalClient
	ids     uint64
}

func newBench(t *testing.T, address string, cluster bool) *bench {
	b := &bench{
		T: t, address: address, sku: "demo", cluster: cluster,
		prefix: fmt.Sprintf("shardtest-%d-%d", time.Now().UnixNano(), prefixes.Add(1)),
		raw: redis.NewUniversalClient(&redis.UniversalOptions{
			Addrs: []string{address}, IsClusterMode: cluster, Protocol: 2, DisableIdentity: true,
		}),
	}
	t.Cleanup(func() {
		b.dropKeys()
		if err := b.raw.Close(); err != nil {
			t.Error(err)
		}
	})
	b.gate = b.open(address, nil)
	return b
}

// open opens a gate on an address, which may be a proxy's.
func (b *bench) open(address string, change func(*shard.Config), options ...shard.Option) *shard.Gate {
	b.Helper()
	cfg := shard.DefaultConfig()
	cfg.Addresses = []string{address}
	cfg.Cluster = b.cluster
	cfg.Prefix = b.prefix
	cfg.MinIdleConns = 1
	cfg.DialTimeoutMs, cfg.IOTimeoutMs, cfg.FlushTimeoutMs, cfg.PoolTimeoutMs = patient, patient, patient, patient
	if change != nil {
		change(&cfg)
	}
	g, err := shard.Open(b.Context(), cfg, options...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := g.Close(); err != nil {
			b.Error(err)
		}
	})
	return g
}

// dropKeys deletes what the test left of its SKU.
func (b *bench) dropKeys() {
	_, err := b.raw.Pipelined(context.Background(), func(p redis.Pipeliner) error {
		for _, share := range sale.Shares(sale.MaxSlots) {
			for _, kind := range []string{"stock", "buyer", "order", "journal"} {
				p.Del(context.Background(), b.key(share, kind))
			}
		}
		return nil
	})
	if err != nil {
		b.Error(err)
	}
}

func (b *bench) key(share sale.Share, kind string) string {
	return b.prefix + ":{" + shard.Tag(b.sku, share) + "}:" + kind
}

// id returns an order id that no other call returned.
func (b *bench) id() (id sale.OrderID) {
	binary.BigEndian.PutUint64(id[8:], atomic.AddUint64(&b.ids, 1))
	return id
}

// lay seals and opens a share.
func (b *bench) lay(share sale.Share, epoch, left int64) {
	b.Helper()
	if _, err := b.gate.Seal(b.Context(), b.sku, share, epoch, 1000); err != nil {
		b.Fatal("seal:", err)
	}
	if err := b.gate.OpenAll(b.Context(), b.sku, []sale.Share{share}, epoch, []int64{left}); err != nil {
		b.Fatal("open:", err)
	}
}

// request asks slot 0 at epoch 1 for one unit within a limit of two.
func (b *bench) request(buyer string) sale.AdmitRequest {
	return sale.AdmitRequest{SKU: b.sku, Share: 0, Epoch: 1, Order: b.id(), Buyer: buyer, Quantity: 1, Limit: 2}
}

// admit asks and expects a verdict.
func (b *bench) admit(r sale.AdmitRequest, want sale.Verdict) sale.Admission {
	b.Helper()
	a, err := b.gate.Admit(b.Context(), r)
	if err != nil {
		b.Fatal(err)
	}
	if a.Verdict != want {
		b.Fatalf("verdict %d on %+v, want %d: %+v", a.Verdict, r, want, a)
	}
	return a
}

// settled is the settlement of a request that was admitted.
func settled(r sale.AdmitRequest, a sale.Admission, kept bool) sale.Settlement {
	return sale.Settlement{
		SKU: r.SKU, Share: r.Share, Order: r.Order, Buyer: r.Buyer, Quantity: r.Quantity, Token: a.Token, Kept: kept,
	}
}

func (b *bench) settle(s ...sale.Settlement) {
	b.Helper()
	if err := b.gate.Settle(b.Context(), s...); err != nil {
		b.Fatal(err)
	}
}

// figures reads a share.
func (b *bench) figures(share sale.Share) sale.Figures {
	b.Helper()
	all, err := b.gate.Peek(b.Context(), b.sku, sale.MaxSlots)
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range all {
		if f.Share == share {
			return f
		}
	}
	b.Fatalf("share %s is not in %+v", share, all)
	return sale.Figures{}
}

func (b *bench) expect(share sale.Share, left, pending int64) {
	b.Helper()
	if f := b.figures(share); f.Left != left || f.Pending != pending {
		b.Fatalf("left %d pending %d, want %d and %d", f.Left, f.Pending, left, pending)
	}
}

// dump is all that Redis holds of a share, in a comparable form.
func (b *bench) dump(share sale.Share) string {
	b.Helper()
	ctx := b.Context()
	stock, err1 := b.raw.HGetAll(ctx, b.key(share, "stock")).Result()
	buyer, err2 := b.raw.HGetAll(ctx, b.key(share, "buyer")).Result()
	order, err3 := b.raw.HGetAll(ctx, b.key(share, "order")).Result()
	journal, err4 := b.raw.ZRangeWithScores(ctx, b.key(share, "journal"), 0, -1).Result()
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			b.Fatal(err)
		}
	}
	return fmt.Sprintf("stock %q\nbuyer %q\norder %q\njournal %v", stock, buyer, order, journal) // maps print sorted
}

// eventually waits for a condition that other goroutines bring about.
func (b *bench) eventually(what string, ok func() bool) {
	b.Helper()
	for deadline := time.Now().Add(patientForIt); !ok(); {
		if time.Now().After(deadline) {
			b.Fatalf("never happened: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
