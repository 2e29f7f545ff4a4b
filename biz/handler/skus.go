package handler

import (
	"context"
	"errors"
	"time"

	"github.com/cloudwego/hertz/pkg/app"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// SKUs looks after what is sold. Its errors are *sale.StateError, sale.ErrExists, sale.ErrConflict, sale.ErrNotFound,
// *sale.InputError and service.ErrTotalUnknown.
type SKUs interface {
	Create(ctx context.Context, sku sale.SKU, total int64) (sale.Listing, error)
	Load(ctx context.Context, sku string) (sale.Listing, error)
	Open(ctx context.Context, sku string) (sale.Listing, error)
	Pause(ctx context.Context, sku string) (sale.Listing, error)
	Close(ctx context.Context, sku string) (sale.Listing, error)
	Adjust(ctx context.Context, sku string, add int64) (sale.Listing, error)
	Get(ctx context.Context, sku string) (sale.Listing, error)
	// List returns at most limit SKUs in the order of their ids, after the given one.
	List(ctx context.Context, after string, limit int) ([]sale.Listing, error)
	Shares(ctx context.Context, sku string) ([]sale.Figures, error)
	Books(ctx context.Context, sku string) (sale.Books, error)
}

// ListingJSON is a SKU with its ledger, as the admin API shows it.
type ListingJSON struct {
	SKU           string     `json:"sku"`
	State         string     `json:"state"`
	OpensAt       time.Time  `json:"opens_at"`
	ClosesAt      *time.Time `json:"closes_at"` // null: open end
	Limit         int64      `json:"limit"`
	PaymentWindow string     `json:"payment_window"` // such as 15m0s
	Slots         int        `json:"slots"`
	ReservePct    int        `json:"reserve_pct"`
	PurchaseToken string     `json:"purchase_token"` // optional or required
	Ledger        LedgerJSON `json:"ledger"`
}

// LedgerJSON is the truth about one SKU's stock.
type LedgerJSON struct {
	Epoch     int64  `json:"epoch"`
	LiveEpoch int64  `json:"live_epoch"`
	LaidEpoch int64  `json:"laid_epoch"`
	Mode      string `json:"mode"`
	State     string `json:"state"`
	Total     int64  `json:"total"`
	Promised  int64  `json:"promised"`
	Sold      int64  `json:"sold"`
	Available int64  `json:"available"`
}

// ListingPage is the answer of GET /admin/v1/skus.
type ListingPage struct {
	SKUs []ListingJSON `json:"skus"`
	Next string        `json:"next,omitempty"` // cursor of the next page; missing on the last one
}

// ShareJSON is one share's figures.
type ShareJSON struct {
	Share   string `json:"share"` // slot number, or reserve
	Gone    bool   `json:"gone"`  // no keys in Redis; the other figures are zero
	Sealed  bool   `json:"sealed"`
	Epoch   int64  `json:"epoch"`
	Left    int64  `json:"left"`
	Pending int64  `json:"pending"`
	Initial int64  `json:"initial"`
	Changes int64  `json:"changes"`
}

// SharesJSON is the answer of GET /admin/v1/skus/{sku}/shares.
type SharesJSON struct {
	Shares []ShareJSON `json:"shares"`
}

func listingJSON(l sale.Listing) ListingJSON {
	return ListingJSON{
		SKU: l.ID, State: string(l.State), OpensAt: l.OpensAt.UTC(), ClosesAt: unlessZero(l.ClosesAt),
		Limit: l.Limit, PaymentWindow: l.PaymentWindow.String(), Slots: l.Slots, ReservePct: l.ReservePct,
		PurchaseToken: tokenUse(l.TokenRequired),
		Ledger: LedgerJSON{
			Epoch: l.Ledger.Epoch, LiveEpoch: l.Ledger.LiveEpoch, LaidEpoch: l.Ledger.LaidEpoch,
			Mode: string(l.Ledger.Mode), State: string(l.Ledger.State), Total: l.Ledger.Total,
			Promised: l.Ledger.Promised, Sold: l.Ledger.Sold, Available: l.Ledger.Available(),
		},
	}
}

func sharesJSON(figures []sale.Figures) SharesJSON {
	all := SharesJSON{Shares: make([]ShareJSON, 0, len(figures))}
	for _, f := range figures {
		all.Shares = append(all.Shares, ShareJSON{
			Share: f.Share.String(), Gone: f.Gone, Sealed: f.Sealed, Epoch: f.Epoch,
			Left: f.Left, Pending: f.Pending, Initial: f.Initial, Changes: f.Changes,
		})
	}
	return all
}

// CreateSKU serves POST /admin/v1/skus.
func (a *API) CreateSKU(ctx context.Context, c *app.RequestContext) {
	d := a.decoders.get()
	defer a.decoders.put(d)
	problem := d.readNoted(c)
	if problem != nil {
		problem.Write(c)
		return
	}
	sku, total, problem := d.newSKU(a.Now())
	if problem != nil {
		problem.Write(c)
		return
	}
	audited(c).Target = sku.ID
	listing, err := a.SKUs.Create(ctx, sku, total)
	if err != nil {
		a.failSKU(c, err)
		return
	}
	c.Response.Header.Set("Location", "/admin/v1/skus/"+sku.ID)
	a.json(c, 201, listingJSON(listing))
}

// ListSKUs serves GET /admin/v1/skus.
func (a *API) ListSKUs(ctx context.Context, c *app.RequestContext) {
	limit, problem := pageLimit(c)
	if problem != nil {
		problem.Write(c)
		return
	}
	after, given := c.GetQuery("after")
	if given && !sale.ValidSKUID(after) {
		badInput(BadRequest, "after", "must be the next of an earlier page").Write(c)
		return
	}
	listings, err := a.SKUs.List(ctx, string([]byte(after)), limit)
	if err != nil {
		a.failSKU(c, err)
		return
	}
	page := ListingPage{SKUs: make([]ListingJSON, 0, len(listings))}
	for _, l := range listings {
		page.SKUs = append(page.SKUs, listingJSON(l))
	}
	if len(listings) == limit {
		page.Next = listings[limit-1].ID
	}
	a.json(c, 200, page)
}

// ShowSKU serves GET /admin/v1/skus/{sku}.
func (a *API) ShowSKU(ctx context.Context, c *app.RequestContext) { a.listing(ctx, c, a.SKUs.Get) }

// ShowShares serves GET /admin/v1/skus/{sku}/shares.
func (a *API) ShowShares(ctx context.Context, c *app.RequestContext) {
	serveSKU(ctx, a, c, a.SKUs.Shares, sharesJSON)
}

// ShowBooks serves GET /admin/v1/skus/{sku}/books.
func (a *API) ShowBooks(ctx context.Context, c *app.RequestContext) {
	serveSKU(ctx, a, c, a.SKUs.Books, func(b sale.Books) sale.Books { return b })
}

// LoadSKU serves POST /admin/v1/skus/{sku}/load.
func (a *API) LoadSKU(ctx context.Context, c *app.RequestContext) { a.move(ctx, c, a.SKUs.Load) }

// OpenSKU serves POST /admin/v1/skus/{sku}/open.
func (a *API) OpenSKU(ctx context.Context, c *app.RequestContext) { a.move(ctx, c, a.SKUs.Open) }

// PauseSKU serves POST /admin/v1/skus/{sku}/pause.
func (a *API) PauseSKU(ctx context.Context, c *app.RequestContext) { a.move(ctx, c, a.SKUs.Pause) }

// CloseSKU serves POST /admin/v1/skus/{sku}/close.
func (a *API) CloseSKU(ctx context.Context, c *app.RequestContext) { a.move(ctx, c, a.SKUs.Close) }

// AdjustSKU serves POST /admin/v1/skus/{sku}/adjust.
func (a *API) AdjustSKU(ctx context.Context, c *app.RequestContext) {
	d := a.decoders.get()
	defer a.decoders.put(d)
	problem := d.readNoted(c)
	if problem != nil {
		problem.Write(c)
		return
	}
	add, problem := d.adjustment()
	if problem != nil {
		problem.Write(c)
		return
	}
	a.listing(ctx, c, func(ctx context.Context, sku string) (sale.Listing, error) {
		return a.SKUs.Adjust(ctx, sku, add)
	})
}

// move serves a change of state, whose body may only be empty.
func (a *API) move(ctx context.Context, c *app.RequestContext, use func(context.Context, string) (sale.Listing, error)) {
	d := a.decoders.get()
	defer a.decoders.put(d)
	if problem := d.nothing(c); problem != nil {
		problem.Write(c)
		return
	}
	a.listing(ctx, c, use)
}

func (a *API) listing(ctx context.Context, c *app.RequestContext, use func(context.Context, string) (sale.Listing, error)) {
	serveSKU(ctx, a, c, use, listingJSON)
}

// serveSKU calls a use case with the SKU of the path and answers with what shown makes of its result.
func serveSKU[T, V any](
	ctx context.Context, a *API, c *app.RequestContext, use func(context.Context, string) (T, error), shown func(T) V,
) {
	sku, problem := SKU(c)
	if problem != nil {
		problem.Write(c)
		return
	}
	result, err := use(ctx, sku)
	if err != nil {
		a.failSKU(c, err)
		return
	}
	a.json(c, 200, shown(result))
}

func (a *API) failSKU(c *app.RequestContext, err error) {
	var state *sale.StateError
	if problem := refusedUpkeep(err); problem != nil {
		problem.Write(c)
		return
	}
	switch {
	case errors.As(err, &state):
		(&Problem{Code: WrongState, Detail: state.Error()}).Write(c)
	case errors.Is(err, sale.ErrExists):
		(&Problem{Code: SKUExists, Field: "sku"}).Write(c)
	case errors.Is(err, sale.ErrConflict):
		(&Problem{Code: Conflict}).Write(c)
	case errors.Is(err, service.ErrTotalUnknown): // not BUSY: asking again could change it twice
		a.Log.Error("adjust failed", "error", err, "request_id", string(requestID(c)))
		(&Problem{Code: Internal, Detail: service.ErrTotalUnknown.Error()}).Write(c)
	case errors.Is(err, sale.ErrNotFound):
		(&Problem{Code: SKUNotFound, Field: "sku"}).Write(c)
	default:
		a.fail(c, err)
	}
}
