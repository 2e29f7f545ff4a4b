package handler

import "stockade/biz/sale"

// Code is an answer that is not a success: a refused purchase, bad input, or trouble of ours.
type Code uint8

// The codes. Clients branch on them, never on titles or details.
const (
	SoldOut Code = iota
	LimitReached
	NotOnSale
	RateLimited
	Busy
	Retry
	BadRequest
	MalformedBody
	InvalidField
	KeyReused
	BuyerMissing
	Unauthenticated
	Forbidden
	TokenRequired
	TokenRefused
	TokenExpired
	TokensDisabled
	CrossOrigin
	RouteNotFound
	SKUNotFound
	OrderNotFound
	MethodNotAllowed
	BodyTooLarge
	UnsupportedMedia
	SKUExists
	WrongState
	Conflict
	NotFinished
	BooksDisagree
	TooManyStreams
	PaymentsDisabled
	BadSignature
	OrderQueued
	OrderPaid
	RefundRequired
	PaymentReused
	DeadLetterNotFound
	DeadLetterHandled
	Internal
	codeCount
)

// CodeInfo is what the world may know of a Code.
type CodeInfo struct {
	Name    string    // member `code` of the problem
	Status  int       // HTTP status
	Title   string    // short, the same for every occurrence
	Meaning string    // what the caller should make of it, one line
	Verdict bool      // a verdict on a purchase: the problem has `result`
	Result  sale.Code // the classic number, of verdicts
}

// codes is the one table of errors: problems, the API description and the command line are generated from it or
// checked against it.
var codes = [codeCount]CodeInfo{
	SoldOut: {
		"SOLD_OUT", 409, "Sold out",
		"Fewer units are left than asked for; nothing was taken. Reason NOT_ENOUGH: a smaller quantity may fit.",
		true, sale.SoldOut,
	},
	LimitReached: {
		"LIMIT_REACHED", 409, "Limit per buyer reached",
		"The buyer's live units would exceed the SKU's limit; nothing was taken.",
		true, sale.LimitReached,
	},
	NotOnSale: {
		"NOT_ON_SALE", 409, "Not on sale",
		"The sale has not started, is over or is paused, as reason tells; nothing was taken.",
		true, sale.NotOnSale,
	},
	RateLimited: {
		"RATE_LIMITED", 429, "Too many requests",
		"A request limit of this node, this address or this buyer is used up; ask again after Retry-After.",
		true, sale.RateLimited,
	},
	Busy: {
		"BUSY", 503, "Busy",
		"No verdict: a queue is full or a dependency is down. With outcome unknown the order may exist: repeat the request with the same Idempotency-Key.",
		true, sale.Busy,
	},
	Retry: {
		"RETRY", 503, "Ask again",
		"No verdict yet: units are left elsewhere or still undecided; ask again after Retry-After with the same Idempotency-Key.",
		true, sale.Retry,
	},
	BadRequest: {
		Name: "BAD_REQUEST", Status: 400, Title: "Malformed request",
		Meaning: "A header, a path or query parameter, or the framing of the request is malformed; field names it.",
	},
	MalformedBody: {
		Name: "MALFORMED_BODY", Status: 400, Title: "Malformed body",
		Meaning: "The body is not one JSON object with known members, each at most once; field names the culprit.",
	},
	InvalidField: {
		Name: "INVALID_FIELD", Status: 422, Title: "Value not allowed",
		Meaning: "A value is missing, has the wrong type or is out of range; field names it, detail says what is allowed.",
	},
	KeyReused: {
		Name: "KEY_REUSED", Status: 422, Title: "Idempotency-Key or token reused",
		Meaning: "The Idempotency-Key or purchase token, as field says, belongs to a request with another quantity; send a new one.",
	},
	BuyerMissing: {
		Name: "BUYER_MISSING", Status: 401, Title: "Buyer missing",
		Meaning: "The gateway in front of this service must name the buyer in X-Buyer-Id.",
	},
	Unauthenticated: {
		Name: "UNAUTHENTICATED", Status: 401, Title: "Credential not accepted",
		Meaning: "The credential is missing, malformed, expired, used before, not signed by a key of this service, or of a kind that is not switched on; detail says which.",
	},
	Forbidden: {
		Name: "FORBIDDEN", Status: 403, Title: "Role not sufficient",
		Meaning: "The admin token is good, and its role may not do this; detail names the role that may.",
	},
	TokenRequired: {
		Name: "PURCHASE_TOKEN_REQUIRED", Status: 403, Title: "Purchase token required",
		Meaning: "Purchases of this SKU need a token from POST /v1/skus/{sku}/token in the header Purchase-Token; nothing was taken.",
	},
	TokenRefused: {
		Name: "PURCHASE_TOKEN_REFUSED", Status: 403, Title: "Purchase token refused",
		Meaning: "The purchase token is malformed, forged, or was issued for another buyer or SKU; nothing was taken.",
	},
	TokenExpired: {
		Name: "PURCHASE_TOKEN_EXPIRED", Status: 403, Title: "Purchase token expired",
		Meaning: "The purchase token is too old and no order came of it; ask for a new one.",
	},
	TokensDisabled: {
		Name: "PURCHASE_TOKENS_DISABLED", Status: 404, Title: "Purchase tokens disabled",
		Meaning: "This node has no secret to sign purchase tokens with.",
	},
	CrossOrigin: {
		Name: "CROSS_ORIGIN", Status: 403, Title: "Cross-origin request",
		Meaning: "A web page of another origin may not call the admin API.",
	},
	RouteNotFound: {
		Name: "ROUTE_NOT_FOUND", Status: 404, Title: "No such path",
		Meaning: "Nothing is served under this path.",
	},
	SKUNotFound: {
		Name: "SKU_NOT_FOUND", Status: 404, Title: "No such SKU",
		Meaning: "There is no SKU with this id.",
	},
	OrderNotFound: {
		Name: "ORDER_NOT_FOUND", Status: 404, Title: "No such order",
		Meaning: "This buyer has no order with this id.",
	},
	MethodNotAllowed: {
		Name: "METHOD_NOT_ALLOWED", Status: 405, Title: "Method not allowed",
		Meaning: "The path is served, but not with this method.",
	},
	BodyTooLarge: {
		Name: "BODY_TOO_LARGE", Status: 413, Title: "Body too large",
		Meaning: "The body is larger than this service reads; the connection is closed.",
	},
	UnsupportedMedia: {
		Name: "UNSUPPORTED_MEDIA_TYPE", Status: 415, Title: "Unsupported media type",
		Meaning: "Bodies are application/json, without content encoding.",
	},
	SKUExists: {
		Name: "SKU_EXISTS", Status: 409, Title: "SKU exists",
		Meaning: "The SKU id is taken.",
	},
	WrongState: {
		Name: "WRONG_STATE", Status: 409, Title: "Wrong state",
		Meaning: "The SKU's state does not allow this move.",
	},
	Conflict: {
		Name: "CONFLICT", Status: 409, Title: "Changed meanwhile",
		Meaning: "Somebody else changed the SKU at the same time; look and repeat after Retry-After.",
	},
	NotFinished: {
		Name: "NOT_FINISHED", Status: 409, Title: "Orders on their way",
		Meaning: "The SKU cannot be closed out while orders are queued, unpaid, uncredited or dead-lettered; detail counts them.",
	},
	BooksDisagree: {
		Name: "BOOKS_DISAGREE", Status: 409, Title: "The books do not agree",
		Meaning: "Ledger, rows and shares of the SKU do not add up, so it is not closed out; detail has the figures. Reconcile it.",
	},
	TooManyStreams: {
		Name: "TOO_MANY_STREAMS", Status: 503, Title: "Too many event streams",
		Meaning: "This node serves as many event streams as it may; poll the order, or ask again after Retry-After.",
	},
	PaymentsDisabled: {
		Name: "PAYMENTS_DISABLED", Status: 404, Title: "Payments disabled",
		Meaning: "This node is configured without a secret to check payment callbacks with.",
	},
	BadSignature: {
		Name: "BAD_SIGNATURE", Status: 401, Title: "Bad signature",
		Meaning: "The callback is not signed with a secret of this service, or not just now; field names the header.",
	},
	OrderQueued: {
		Name: "ORDER_QUEUED", Status: 409, Title: "Order still queued",
		Meaning: "The order is accepted and its row is not written yet; ask again after Retry-After.",
	},
	OrderPaid: {
		Name: "ORDER_PAID", Status: 409, Title: "Order paid",
		Meaning: "The order is paid: it is never closed.",
	},
	RefundRequired: {
		Name: "REFUND_REQUIRED", Status: 409, Title: "Refund required",
		Meaning: "The order is closed, as reason tells, or paid by another payment: this payment is to be refunded.",
	},
	PaymentReused: {
		Name: "PAYMENT_REUSED", Status: 409, Title: "Payment reused",
		Meaning: "The payment belongs to another order; nothing was changed.",
	},
	DeadLetterNotFound: {
		Name: "DEAD_LETTER_NOT_FOUND", Status: 404, Title: "No such dead letter",
		Meaning: "There is no dead letter with this number.",
	},
	DeadLetterHandled: {
		Name: "DEAD_LETTER_HANDLED", Status: 409, Title: "Dead letter handled",
		Meaning: "The dead letter is not OPEN: it was replayed, compensated or dropped.",
	},
	Internal: {
		Name: "INTERNAL", Status: 500, Title: "Internal error",
		Meaning: "Our fault; it was logged under request_id.",
	},
}

// Info returns the table's row for c.
func (c Code) Info() CodeInfo { return codes[c] }

// Codes returns a copy of the table, in its order.
func Codes() []CodeInfo { return append([]CodeInfo(nil), codes[:]...) }
