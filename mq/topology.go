package mq

// Names are the exchanges and queues of one installation.
type Names struct {
	Orders string // direct exchange of envelopes
	Create string // queue of envelopes, bound to Orders under its own name
	Dead   string // fanout exchange of parked messages, and the queue that keeps them
	Events string // topic exchange of notices
}

// NamesFor derives the names from a prefix.
func NamesFor(prefix string) Names {
	return Names{
		Orders: prefix + ".orders",
		Create: prefix + ".order.create",
		Dead:   prefix + ".order.dead",
		Events: prefix + ".events",
	}
}
