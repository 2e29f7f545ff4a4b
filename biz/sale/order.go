package sale

import "time"

// OrderState is where an order stands: QUEUED → CREATED → PAID, or CLOSED with a reason.
type OrderState string

// The states of an order.
const (
	OrderQueued  OrderState = "QUEUED"  // accepted, order row not yet written
	OrderCreated OrderState = "CREATED" // order row written, waiting for the payment
	OrderPaid    OrderState = "PAID"
	OrderClosed  OrderState = "CLOSED"
)

// Order is one buyer's order. While it is QUEUED it exists as an outbox row only; under durability journal, as an
// acknowledged take of a share before that. Its JSON form is the one of the API, of envelopes and of notices.
type Order struct {
	ID         OrderID    `json:"order_id"`
	SKU        string     `json:"sku"`
	Buyer      string     `json:"buyer"`
	Quantity   int64      `json:"quantity"`
	State      OrderState `json:"state"`
	Reason     Reason     `json:"reason,omitempty"` // of a CLOSED order
	AcceptedAt time.Time  `json:"accepted_at"`      // when the promise was made, database time, UTC, whole milliseconds
	ExpiresAt  time.Time  `json:"expires_at"`       // AcceptedAt plus the SKU's payment window, never moved
}

// Notice is news about orders for other systems. It is written in the transaction that made the news and deleted once
// the broker has it, so it arrives at least once.
type Notice struct {
	Seq     int64
	Topic   string // routing key, such as TopicCreated
	Orders  []Order
	Payment string // of TopicRefundRequired: the provider's id of the payment
}

// Topics of notices.
const (
	TopicCreated        = "order.created"         // order rows were just written
	TopicPaid           = "order.paid"            // orders are PAID
	TopicClosed         = "order.closed"          // orders are CLOSED, with their reasons
	TopicRefundRequired = "order.refund_required" // a payment came for an order that cannot take it
)
