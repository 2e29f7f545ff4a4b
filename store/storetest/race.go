package storetest

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"stockade/biz/sale"
)

// together runs n functions that start at the same moment and waits for them.
func together(n int, work func(i int)) {
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			work(i)
		})
	}
	close(start)
	wg.Wait()
}

func lastUnitsRace(t *testing.T, s Subject) {
	const workers, groups, size, total = 6, 5, 12, 150
	newSKU(t, s.DB, "a", total, 1000)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	watching, stop := context.WithCancel(context.Background())
	var watcher sync.WaitGroup
	watcher.Go(func() { // the books agree at every moment, not only at the end
		for watching.Err() == nil {
			if _, err := agreeingBooks(s.DB, "a"); err != nil {
				t.Error(err)
				return
			}
		}
	})
	var mu sync.Mutex
	var sold, unmet int64
	smallestUnmet := int64(1 << 40)
	together(workers, func(w int) {
		rng := rand.New(rand.NewPCG(seed, uint64(w)))
		for range groups {
			var takes []sale.Take
			for range size {
				takes = append(takes, take("a", buyer(rng.IntN(1000)), 1+rng.Int64N(3), 1000))
			}
			ds := s.DB.Promise(context.Background(), takes)
			mu.Lock()
			for i, d := range ds {
				switch d.Outcome {
				case sale.Promised:
					sold += takes[i].Quantity
				case sale.Short:
					unmet++
					smallestUnmet = min(smallestUnmet, takes[i].Quantity)
					if d.Available >= takes[i].Quantity {
						t.Errorf("refused %d units with %d available", takes[i].Quantity, d.Available)
					}
				default:
					t.Errorf("outcome %v: %v", d.Outcome, d.Err)
				}
			}
			mu.Unlock()
		}
	})
	stop()
	watcher.Wait()
	b := wantBooks(t, s.DB, "a")
	if b.Promised != sold || unmet == 0 || b.Total-b.Promised >= smallestUnmet {
		t.Fatalf("sold %d, %d unmet, the smallest of %d units; books %+v", sold, unmet, smallestUnmet, b)
	}
}

func limitRace(t *testing.T, s Subject) {
	const workers, groups, limit, rivals = 6, 6, 3, 4
	newSKU(t, s.DB, "a", 10_000, limit)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var mu sync.Mutex
	got := map[string]int64{}
	together(workers, func(w int) {
		rng := rand.New(rand.NewPCG(seed, uint64(w)))
		for range groups {
			var takes []sale.Take
			for range 10 {
				takes = append(takes, take("a", buyer(rng.IntN(rivals)), 1+rng.Int64N(2), limit))
			}
			takes = append(takes, take("a", "calm-"+buyer(w), 1, 1000)) // nobody pays for his neighbours
			ds := s.DB.Promise(context.Background(), takes)
			mu.Lock()
			for i, d := range ds {
				if d.Outcome == sale.Promised {
					got[takes[i].Buyer] += takes[i].Quantity
				} else if d.Outcome != sale.OverLimit || i == len(ds)-1 {
					t.Errorf("take %+v: outcome %v: %v", takes[i], d.Outcome, d.Err)
				}
			}
			mu.Unlock()
		}
	})
	for i := range rivals {
		// Single units were asked for after the limit was near, so it is reached exactly.
		if got[buyer(i)] != limit {
			t.Errorf("%s got %d units of %d", buyer(i), got[buyer(i)], limit)
		}
	}
	most := count(t, s, `SELECT MAX(n)
		FROM (SELECT SUM(qty) n FROM outbox WHERE buyer LIKE 'buyer%' GROUP BY buyer) x`)
	if most != limit {
		t.Errorf("a buyer holds %d units", most)
	}
	b, err := s.DB.Books(context.Background(), "a")
	must(t, err)
	if b.Promised != b.LiveUnits {
		t.Errorf("books %+v", b)
	}
}

// One order admitted twice, in different shares, and promised by two groups at once: one row, and only the take that
// the row tells of is kept.
func sameOrderRace(t *testing.T, s Subject) {
	const workers, orders = 4, 30
	newSKU(t, s.DB, "a", 10_000, 10)
	base := make([]sale.Take, orders)
	for i := range base {
		base[i] = take("a", buyer(i), 1, 10)
	}
	var mu sync.Mutex
	promised, elsewhere := map[sale.OrderID]int{}, 0
	together(workers, func(w int) {
		takes := append([]sale.Take(nil), base...)
		rand.Shuffle(len(takes), func(i, j int) { takes[i], takes[j] = takes[j], takes[i] })
		for i := range takes {
			takes[i].Token.Change += int64(w) * 1_000_000
		}
		for n := 0; n < orders; n += 10 {
			part := takes[n : n+10]
			ds := s.DB.Promise(context.Background(), part)
			mu.Lock()
			for i, d := range ds {
				switch d.Outcome {
				case sale.Promised:
					promised[part[i].Order]++
				case sale.FoundElse:
					elsewhere++
				default:
					t.Errorf("outcome %v: %v", d.Outcome, d.Err)
				}
			}
			mu.Unlock()
		}
	})
	for id, n := range promised {
		if n != 1 {
			t.Errorf("order %s was promised %d times", id, n)
		}
	}
	if b := wantBooks(t, s.DB, "a"); b.Promised != orders || len(promised) != orders || elsewhere != orders*(workers-1) {
		t.Fatalf("%d orders promised, %d found, books %+v", len(promised), elsewhere, b)
	}
}
