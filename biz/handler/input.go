package handler

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/cloudwego/hertz/pkg/app"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// Headers and parameters that callers send.
const (
	BuyerHeader = "X-Buyer-Id"
	KeyHeader   = "Idempotency-Key"

	maxPage      = 200 // rows of a list
	defaultPage  = 50
	maxNameEcho  = 64 // bytes of a caller's own field name in an answer
	pathEscapeCh = '%'
)

// SKU returns the path parameter sku, which is well-formed, or the problem that names it.
func SKU(c *app.RequestContext) (string, *Problem) {
	id := c.Param("sku") // a part of the router's own copy of the path
	if strings.IndexByte(id, pathEscapeCh) >= 0 {
		plain, err := url.PathUnescape(id)
		if err != nil {
			return "", badInput(BadRequest, "sku", "has a malformed percent-encoding")
		}
		id = plain
	}
	if !sale.ValidSKUID(id) {
		return "", badInput(BadRequest, "sku", "must match "+sale.SKUIDPattern)
	}
	return id, nil
}

// Buyer returns the buyer, or the problem that names the header. The router lets no header pass that it does not believe,
// and puts there whom a token names.
func Buyer(c *app.RequestContext) (string, *Problem) {
	values := c.Request.Header.PeekAll(BuyerHeader)
	switch {
	case len(values) == 0 || len(values) == 1 && len(values[0]) == 0:
		return "", badInput(BuyerMissing, BuyerHeader, "must name the buyer")
	case len(values) > 1:
		return "", badInput(BadRequest, BuyerHeader, "must be given once")
	}
	buyer := string(values[0])
	if !service.ValidBuyer(buyer) {
		return "", badInput(BadRequest, BuyerHeader,
			"must be 1 to "+strconv.Itoa(sale.MaxBuyerID)+" bytes of printable UTF-8")
	}
	return buyer, nil
}

// Key returns the Idempotency-Key, empty when there is none, or the problem that names the header.
func Key(c *app.RequestContext) (string, *Problem) {
	values := c.Request.Header.PeekAll(KeyHeader)
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", badInput(BadRequest, KeyHeader, "must be given at most once")
	}
	key := string(values[0])
	if !service.ValidKey(key) {
		return "", badInput(BadRequest, KeyHeader,
			"must be 1 to "+strconv.Itoa(service.MaxKey)+" printable ASCII characters")
	}
	return key, nil
}

// orderID returns the path parameter id.
func orderID(c *app.RequestContext) (sale.OrderID, *Problem) {
	id, err := sale.ParseOrderID(c.Param("id"))
	if err != nil {
		return id, badInput(BadRequest, "id", "must be a UUID of 36 characters")
	}
	return id, nil
}

// pageLimit returns the query parameter limit: how many rows a list may have.
func pageLimit(c *app.RequestContext) (int, *Problem) {
	raw, given := c.GetQuery("limit")
	if !given {
		return defaultPage, nil
	}
	n, err := strconv.Atoi(raw)
	if err != nil || n < 1 || n > maxPage {
		return 0, badInput(BadRequest, "limit", "must be a whole number from 1 to "+strconv.Itoa(maxPage))
	}
	return n, nil
}

// quoteName makes a name that the caller chose fit for an answer.
func quoteName(name string) string {
	if len(name) > maxNameEcho {
		name = name[:maxNameEcho]
	}
	return strings.ToValidUTF8(name, "")
}
