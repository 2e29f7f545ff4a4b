package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"stockade/biz/sale"
)

// archivePage is how many outbox rows are archived in one step.
const archivePage = 1000

// CloseoutReport is what a close-out compared and found in agreement. It is kept.
type CloseoutReport struct {
	SKU    string     `json:"sku"`
	At     time.Time  `json:"at"`
	Epoch  int64      `json:"epoch"` // under which the shares were sealed for good
	Path   sale.Mode  `json:"path"`
	Books  sale.Books `json:"books"`
	Left   int64      `json:"left"`   // Σ over the sealed shares; not compared under path mysql
	Unsold int64      `json:"unsold"` // total − promised
}

// UnfinishedError refuses a close-out while orders of the SKU are on their way.
type UnfinishedError struct {
	SKU string
	sale.Unfinished
}

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("sku %s is not finished: %d orders queued, %d unpaid, %d closed but not credited, %d open dead letters, %d half closed",
		e.SKU, e.Queued, e.Unpaid, e.Uncredited, e.DeadOpen, e.Differ)
}

// DisagreementError refuses a close-out whose books, ledger and shares do not agree. The shares are laid out again.
type DisagreementError struct {
	SKU     string
	Figures string // the figures that differ
}

func (e *DisagreementError) Error() string {
	return fmt.Sprintf("the books of sku %s do not agree: %s", e.SKU, e.Figures)
}

// CloseOut ends the life of a CLOSED SKU: it seals the shares for good, compares them with the ledger and the rows, keeps
// a report, deletes the keys and archives the outbox rows. It can be asked again after any failure, and of a SKU that is
// CLOSED_OUT, and then finishes what is left to do. Errors: *sale.StateError, *UnfinishedError, *DisagreementError,
// sale.ErrConflict.
func (s *SKUs) CloseOut(ctx context.Context, sku string) (CloseoutReport, error) {
	listing, err := s.ledgers.Listing(ctx, sku)
	if err != nil {
		return CloseoutReport{}, unavailable(err)
	}
	switch listing.State {
	case sale.ClosedOut:
	case sale.Closed:
		if err := s.compareAndReport(ctx, listing); err != nil {
			return CloseoutReport{}, unavailable(err)
		}
	default:
		return CloseoutReport{}, &sale.StateError{SKU: sku, State: listing.State, Want: "close out"}
	}
	if err := s.dropShares(ctx, sku); err != nil {
		return CloseoutReport{}, unavailable(err)
	}
	if err := s.faults.At(ctx, sale.CloseoutDropped); err != nil {
		return CloseoutReport{}, unavailable(err)
	}
	for {
		n, err := s.closeouts.Archive(ctx, sku, archivePage)
		if err != nil {
			return CloseoutReport{}, unavailable(err)
		}
		if n == 0 {
			break
		}
	}
	if _, err := s.changed(ctx, sku); err != nil {
		return CloseoutReport{}, err
	}
	return s.CloseoutReport(ctx, sku)
}

// CloseoutReport reads the report of a SKU that is CLOSED_OUT; *sale.StateError for another one, sale.ErrNotFound.
func (s *SKUs) CloseoutReport(ctx context.Context, sku string) (report CloseoutReport, err error) {
	raw, err := s.closeouts.CloseoutReport(ctx, sku)
	if errors.Is(err, sale.ErrNotFound) {
		l, err := s.ledgers.Listing(ctx, sku)
		if err == nil {
			err = &sale.StateError{SKU: sku, State: l.State, Want: "show its close-out"}
		}
		return report, unavailable(err)
	}
	if err != nil {
		return report, unavailable(err)
	}
	return report, json.Unmarshal(raw, &report)
}

// compareAndReport moves a SKU from CLOSED to CLOSED_OUT if everything agrees. The rows are counted before the shares are
// sealed: counting takes long, and of a finished SKU they do not change any more.
func (s *SKUs) compareAndReport(ctx context.Context, l sale.Listing) error {
	unfinished, err := s.closeouts.Unfinished(ctx, l.ID)
	if err != nil {
		return err
	}
	if !unfinished.None() {
		return &UnfinishedError{SKU: l.ID, Unfinished: unfinished}
	}
	books, err := s.books.Books(ctx, l.ID)
	if err != nil {
		return err
	}
	if !books.Agree() || books.Missing != 0 || books.Sold != books.Promised {
		return &DisagreementError{SKU: l.ID, Figures: fmt.Sprintf("%+v", books)}
	}
	report := CloseoutReport{
		SKU: l.ID, At: s.now().UTC(), Path: l.Ledger.Mode, Books: books, Unsold: books.Total - books.Promised,
	}
	err = s.sealForGood(ctx, l, &report)
	var differ *DisagreementError
	if errors.As(err, &differ) {
		// The shares stay useful: credits still go there, and the next try finds them whole.
		if err := s.resharer.Run(ctx, l.ID, ReshareOrder{Reason: "close-out refused", Full: true}); err != nil {
			s.log.WarnContext(ctx, "shares not laid out again", "sku", l.ID, "error", err)
		}
	}
	return err
}

// sealForGood seals every share under an epoch of its own, compares, and keeps the report.
func (s *SKUs) sealForGood(ctx context.Context, l sale.Listing, report *CloseoutReport) error {
	sealed, err := s.sealShares(ctx, l.ID, l.Ledger.Epoch)
	if err != nil {
		return err
	}
	if err := s.faults.At(ctx, sale.CloseoutSealed); err != nil {
		return err
	}
	now := sealed.listing.Ledger
	report.Epoch = now.Epoch
	if now.Total != report.Books.Total || now.Promised != report.Books.Promised || now.Sold != report.Books.Sold {
		return &DisagreementError{SKU: l.ID, Figures: fmt.Sprintf(
			"total %d, promised %d, sold %d in the ledger, %d, %d, %d a moment ago",
			now.Total, now.Promised, now.Sold, report.Books.Total, report.Books.Promised, report.Books.Sold)}
	}
	if l.Ledger.Mode != sale.ModeMySQL {
		report.Left = sealed.left
		if sealed.gone > 0 || sealed.pending != 0 || sealed.left != now.Available() {
			return &DisagreementError{SKU: l.ID, Figures: fmt.Sprintf(
				"total %d − promised %d = %d, the shares have %d left and %d undecided, %d of them were gone",
				now.Total, now.Promised, now.Available(), sealed.left, sealed.pending, sealed.gone)}
		}
	}
	// The sign of life also finds out whether another node has begun a reshare meanwhile.
	if err := s.ledgers.ReshareProgress(ctx, l.ID, now.Epoch); err != nil {
		return err
	}
	text, err := json.Marshal(report)
	if err != nil {
		return err
	}
	if err := s.closeouts.CloseOut(ctx, l.ID, text); err != nil {
		return err
	}
	return s.faults.At(ctx, sale.CloseoutReported)
}

// sealedShares is what sealing all shares found.
type sealedShares struct {
	listing       sale.Listing
	left, pending int64
	gone          int
}

// sealShares raises the epoch and seals every share that may have keys.
func (s *SKUs) sealShares(ctx context.Context, sku string, seen int64) (found sealedShares, err error) {
	snap, err := s.ledgers.BeginReshare(ctx, sku, seen, sale.LedgerChange{})
	if err != nil {
		return found, err
	}
	found.listing = snap.Listing()
	if err := snap.Close(); err != nil {
		return found, err
	}
	slots := max(found.listing.Slots, found.listing.Ledger.LaidSlots)
	shares := sale.Shares(slots)
	sealed := make([]sale.SealedShare, len(shares))
	err = each(ctx, shares, func(ctx context.Context, i int, share sale.Share) (err error) {
		sealed[i], err = s.layer.Seal(ctx, sku, share, found.listing.Ledger.Epoch, 1)
		return err
	})
	if err != nil {
		return found, err
	}
	figures, err := s.gate.Peek(ctx, sku, slots)
	for i, f := range figures {
		found.left += f.Left - f.Short
		found.pending += f.Pending
		if sealed[i].Gone {
			found.gone++
		}
	}
	return found, err
}

// dropShares deletes the keys of a SKU that is CLOSED_OUT, under an epoch of its own: whoever sealed them before, this
// finishes it. The epoch never becomes live, so nobody can promise any more.
func (s *SKUs) dropShares(ctx context.Context, sku string) error {
	l, err := s.ledgers.Listing(ctx, sku)
	if err != nil {
		return err
	}
	sealed, err := s.sealShares(ctx, sku, l.Ledger.Epoch)
	if err != nil {
		return err
	}
	epoch := sealed.listing.Ledger.Epoch
	shares := sale.Shares(max(sealed.listing.Slots, sealed.listing.Ledger.LaidSlots))
	return each(ctx, shares, func(ctx context.Context, _ int, share sale.Share) error {
		return s.layer.Drop(ctx, sku, share, epoch)
	})
}
