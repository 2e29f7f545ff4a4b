package service

import "stockade/biz/sale"

// offer hands the relay the orders that were promised just now: until it hears of them they stay QUEUED.
func offer(relay Relay, decisions []sale.Decision) {
	committed := make([]sale.Order, 0, len(decisions))
	for _, d := range decisions {
		if d.Outcome == sale.Promised {
			committed = append(committed, d.Order)
		}
	}
	if len(committed) > 0 {
		relay.Offer(committed)
	}
}

// noRelay leaves every order to the relay's sweeper, which reads the outbox.
type noRelay struct{}

func (noRelay) Offer([]sale.Order) {}

func relayOr(r Relay) Relay {
	if r == nil {
		return noRelay{}
	}
	return r
}
