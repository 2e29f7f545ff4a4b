package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"stockade/biz/sale"
)

// noAnswer stands for the code of a request that got none.
const noAnswer = "NO_ANSWER"

// Bounds of one buyer.
const (
	buyerTries   = 20 // answers that ask to come again
	buyerPause   = 250 * time.Millisecond
	shopTimeout  = 30 * time.Second
	maxLatencyUs = int64(time.Minute / time.Microsecond)
)

// shopper buys over HTTP as a shop's front end does.
type shopper struct {
	base   string
	client *http.Client
}

func newShopper(base string, connections int) *shopper {
	return &shopper{base: base, client: &http.Client{
		Timeout: shopTimeout,
		Transport: &http.Transport{
			MaxConnsPerHost: connections, MaxIdleConns: connections, MaxIdleConnsPerHost: connections,
		},
	}}
}

func (s *shopper) close() { s.client.CloseIdleConnections() }

// answer is the last thing that one buyer was told.
type answer struct {
	buyer string
	id    sale.OrderID
	code  string
	took  time.Duration // of the slowest request
	tries int
}

// buy asks for one unit, and again while the answer is no verdict.
func (s *shopper) buy(ctx context.Context, buyer string) answer {
	a := answer{buyer: buyer}
	for a.tries < buyerTries && ctx.Err() == nil {
		if a.tries > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(buyerPause):
			}
		}
		a.tries++
		begun := time.Now()
		a.code, a.id = s.ask(ctx, buyer)
		a.took = max(a.took, time.Since(begun))
		switch a.code {
		case sale.Accepted.String(), sale.SoldOut.String(), sale.LimitReached.String(), sale.NotOnSale.String():
			return a
		}
	}
	return a
}

// ask sends one request. A request without an answer has the code noAnswer.
func (s *shopper) ask(ctx context.Context, buyer string) (code string, id sale.OrderID) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+"/v1/skus/"+demoSKU+"/orders",
		strings.NewReader(`{"quantity":1}`))
	if err != nil {
		return noAnswer, id
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Buyer-Id", buyer)
	req.Header.Set("Idempotency-Key", "demo")
	resp, err := s.client.Do(req)
	if err != nil {
		return noAnswer, id
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var told struct {
		Code    string       `json:"code"`
		OrderID sale.OrderID `json:"order_id"`
	}
	if err != nil || json.Unmarshal(body, &told) != nil || told.Code == "" {
		return noAnswer, id
	}
	return told.Code, told.OrderID
}

// answers collects what buyers were told.
type answers struct {
	mu      sync.Mutex
	codes   map[string]int
	won     []answer
	retried int
	latency *hdrhistogram.Histogram // microseconds
}

func newAnswers() *answers {
	return &answers{codes: map[string]int{}, latency: hdrhistogram.New(1, maxLatencyUs, 3)}
}

func (all *answers) add(a answer) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.codes[a.code]++
	all.retried += a.tries - 1
	if a.code == sale.Accepted.String() {
		all.won = append(all.won, a)
	}
	_ = all.latency.RecordValue(min(a.took.Microseconds(), maxLatencyUs)) // within bounds: cannot fail
}

// report is what a demo shows.
type report struct {
	Buyers    int            `json:"buyers"`
	Accepted  int            `json:"accepted"`
	SoldOut   int            `json:"sold_out"`
	Other     int            `json:"other"`
	Codes     map[string]int `json:"codes"` // the last answer of every buyer
	Retried   int            `json:"retried"`
	P50Ms     float64        `json:"p50_ms"`
	P99Ms     float64        `json:"p99_ms"`
	Orders    int64          `json:"orders_written"`
	Oversold  int64          `json:"oversold"`
	Lost      int64          `json:"lost"`
	Duplicate int64          `json:"duplicate"`
	Stranded  int64          `json:"stranded"`
	Agree     bool           `json:"books_agree"`
}

func (all *answers) report() report {
	all.mu.Lock()
	defer all.mu.Unlock()
	r := report{
		Accepted: all.codes[sale.Accepted.String()], SoldOut: all.codes[sale.SoldOut.String()],
		Codes: all.codes, Retried: all.retried,
		P50Ms: float64(all.latency.ValueAtQuantile(50)) / 1000, P99Ms: float64(all.latency.ValueAtQuantile(99)) / 1000,
	}
	for _, n := range all.codes {
		r.Buyers += n
	}
	r.Other = r.Buyers - r.Accepted - r.SoldOut
	return r
}
