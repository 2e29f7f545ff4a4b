package service

import (
	"sync/atomic"

	"stockade/biz/sale"
)

// Results counts the answers to purchases on this node since its start, each code apart. Its methods may be called by many
// goroutines and take no lock; nil Results count nothing.
type Results struct {
	counts [len(sale.Codes)]atomic.Int64
}

// Count adds one answer.
func (r *Results) Count(code sale.Code) {
	if r == nil {
		return
	}
	if i := resultIndex(code); i >= 0 && i < len(r.counts) {
		r.counts[i].Add(1)
	}
}

// Counts returns the counts by the codes' names, those of zero too.
func (r *Results) Counts() map[string]int64 {
	counts := make(map[string]int64, len(sale.Codes))
	for _, code := range sale.Codes {
		counts[code.String()] = 0
		if r != nil {
			counts[code.String()] = r.counts[resultIndex(code)].Load()
		}
	}
	return counts
}

// resultIndex is a code's place in sale.Codes, which has the numbers from ACCEPTED downwards without a gap.
func resultIndex(code sale.Code) int { return int(sale.Accepted - code) }
