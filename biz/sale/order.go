package sale

import "time"

// OrderState is where an order stands: QUEUED → CREATED → PAID, or CLOSED with a reason.
type OrderState string

// The states of an order.
const (
	OrderQueued  OrderState = "QUEUED"  // accepted and durable, order row not yet written
	OrderCreated OrderState = "CREATED" // order row written, waiting for the payment
	OrderPaid    OrderState = "PAID"
	OrderClosed  OrderState = "CLOSED"
)

// Order is one buyer's order. While it is QUEUED it exists as an outbox row only.
type Order struct {
	ID         OrderID
	SKU        string
	Buyer      string
	Quantity   int64
	State      OrderState
	Reason     Reason    // of a CLOSED order
	AcceptedAt time.Time // when the promise was made, database time
	ExpiresAt  time.Time // AcceptedAt plus the SKU's payment window, never moved
}
