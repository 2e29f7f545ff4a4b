package mq

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"stockade/biz/sale"
)

// maxMessageID bounds the message id of a dead letter, in bytes.
const maxMessageID = 128

// openEnvelope decodes an envelope. When that fails and the envelope still is a list of events, each event is decoded
// alone, so that one that cannot be read does not take the others with it.
func openEnvelope(m Message) (orders []sale.Order, unreadable []poison) {
	orders, err := DecodeEnvelope(m.ContentType, m.Body)
	if err == nil {
		return orders, nil
	}
	whole := []poison{{id: letterID(m), contentType: m.ContentType, body: m.Body, err: err}}
	if m.ContentType != EnvelopeType || len(m.Body) > MaxEnvelopeBytes {
		return nil, whole
	}
	var events struct {
		Orders []json.RawMessage `json:"orders"`
	}
	if strictJSON.Unmarshal(m.Body, &events) != nil || len(events.Orders) == 0 || len(events.Orders) > MaxEnvelopeOrders {
		return nil, whole
	}
	for _, event := range events.Orders {
		body := append(append([]byte(`{"orders":[`), event...), `]}`...)
		one, err := DecodeEnvelope(EnvelopeType, body)
		if err != nil {
			_, id := named(body)
			unreadable = append(unreadable, poison{id: eventID(id, body), contentType: EnvelopeType, body: body, err: err})
			continue
		}
		orders = append(orders, one...)
	}
	return orders, unreadable
}

// named finds out which order a message with a single event is about, as far as that can be told. The id is zero
// otherwise.
func named(body []byte) (sku string, id sale.OrderID) {
	if len(body) > MaxEnvelopeBytes {
		return "", id
	}
	var events struct {
		Orders []map[string]json.RawMessage `json:"orders"`
	}
	if json.Unmarshal(body, &events) != nil || len(events.Orders) != 1 {
		return "", id
	}
	event := events.Orders[0]
	if json.Unmarshal(event["order_id"], &id) != nil {
		id = sale.OrderID{}
	}
	if json.Unmarshal(event["sku"], &sku) != nil || !sale.ValidSKUID(sku) {
		sku = ""
	}
	return sku, id
}

// eventID is the message id of a single event: its order's id, so that each time it fails it is the same letter.
func eventID(id sale.OrderID, body []byte) string {
	if id == (sale.OrderID{}) {
		return bodyID(body)
	}
	return id.String()
}

// letterID is the id that a message came with, if it came with a usable one.
func letterID(m Message) string {
	if m.ID == "" || len(m.ID) > maxMessageID {
		return bodyID(m.Body)
	}
	return m.ID
}

func bodyID(body []byte) string {
	sum := sha256.Sum256(body)
	return "body-" + hex.EncodeToString(sum[:16])
}
