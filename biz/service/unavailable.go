package service

import (
	"errors"
	"fmt"

	"stockade/biz/sale"
)

// unavailable marks an error that is not one of the domain's as sale.ErrUnavailable: what the adapters have to say beyond
// the domain is about Redis, MySQL or the way to them.
func unavailable(err error) error {
	var state *sale.StateError
	var input *sale.InputError
	var unfinished *UnfinishedError
	var differ *DisagreementError
	if err == nil || errors.As(err, &state) || errors.As(err, &input) || errors.As(err, &unfinished) || errors.As(err, &differ) {
		return err
	}
	for _, known := range []error{
		sale.ErrNotFound, sale.ErrExists, sale.ErrConflict, sale.ErrQueueFull, sale.ErrShuttingDown, ErrTotalUnknown,
		ErrOutcomeUnknown,
	} {
		if errors.Is(err, known) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", sale.ErrUnavailable, err)
}
