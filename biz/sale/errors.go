package sale

import (
	"errors"
	"fmt"
)

// Errors of the domain. Adapters return them, wrapped or bare; callers test with errors.Is.
var (
	ErrNotFound     = errors.New("not found")
	ErrExists       = errors.New("exists already")
	ErrConflict     = errors.New("changed by somebody else in the meantime")
	ErrKeyReused    = errors.New("the Idempotency-Key or purchase token was used for another request")
	ErrQueueFull    = errors.New("queue full")
	ErrShuttingDown = errors.New("shutting down")
	// ErrPurchaseTokenRequired refuses a purchase without a purchase token of a SKU that calls for one.
	ErrPurchaseTokenRequired = errors.New("purchases of this SKU need a purchase token")
	// ErrPurchaseTokenExpired refuses a purchase token that is too old and of which no order came.
	ErrPurchaseTokenExpired = errors.New("the purchase token is too old")
	// ErrUnavailable says that Redis or MySQL did not do its part.
	ErrUnavailable = errors.New("a dependency does not answer")
	// ErrNotSent says that the request never left this process: nothing was taken.
	ErrNotSent = errors.New("given up before it was sent")
	// ErrBreakerOpen says that a breaker keeps calls away from a sick dependency: nothing was asked of it.
	ErrBreakerOpen = errors.New("breaker open")
	// ErrRowLocked says that others held a SKU's row for too long, or took it first every time. The database is well.
	ErrRowLocked = errors.New("somebody holds the SKU's row")
)

// InputError names the input that is wrong and what is allowed instead.
type InputError struct {
	Field  string // name as the caller wrote it: a JSON field, a header, a query parameter
	Detail string // what is allowed
}

func (e *InputError) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Detail) }

// BadInput returns an *InputError.
func BadInput(field, detail string) error { return &InputError{Field: field, Detail: detail} }

// StateError refuses an operator's move, with the state that stood in the way.
type StateError struct {
	SKU   string
	State SKUState
	Want  string // the move that was asked for
}

func (e *StateError) Error() string {
	return fmt.Sprintf("sku %s is %s: cannot %s", e.SKU, e.State, e.Want)
}
