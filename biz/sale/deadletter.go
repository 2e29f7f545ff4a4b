package sale

import "time"

// DeadState is what became of a dead letter.
type DeadState string

// The states of a dead letter.
const (
	DeadOpen        DeadState = "OPEN"        // nobody has dealt with it
	DeadReplayed    DeadState = "REPLAYED"    // sent to the order queue once more
	DeadCompensated DeadState = "COMPENSATED" // its order is closed, by configuration or by an operator who dropped it
	DeadDropped     DeadState = "DROPPED"     // thrown away: its order is written, or it names none that could be closed
)

// DeadLetter is a message that could not be turned into an order after all retries.
type DeadLetter struct {
	Seq         int64     `json:"seq"`
	MessageID   string    `json:"message_id"`
	SKU         string    `json:"sku,omitempty"`
	Order       *OrderID  `json:"order_id,omitempty"` // nil when the message cannot be read
	Error       string    `json:"error"`              // why, at most 1024 bytes
	Source      string    `json:"source"`             // the queue it was consumed from
	ContentType string    `json:"content_type"`
	Body        []byte    `json:"body,omitempty"` // as it came; base64 in JSON
	State       DeadState `json:"state"`
	Attempts    int       `json:"attempts"` // times it was dead-lettered
	At          time.Time `json:"at"`       // the first time
	HandledAt   time.Time `json:"handled_at,omitzero"`
	HandledBy   string    `json:"handled_by,omitempty"`
}

// DeadFilter chooses dead letters. Zero fields choose all.
type DeadFilter struct {
	State DeadState
	SKU   string
	After int64 // seq of the last one of the page before
	Limit int   // 1 to 200
}
