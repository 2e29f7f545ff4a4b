package shard

import "stockade/biz/sale"

// KeysOf are the keys of a share, for tests outside of the package.
func KeysOf(prefix, sku string, share sale.Share) []string {
	k := newKeys(prefix, sku, share)
	return []string{k.stock, k.buyer, k.order, k.journal}
}

// AdmitSource is the text of the admit script.
func AdmitSource() string { return admitScript.src }

// PackAdmit is a batch of one request.
func PackAdmit(r sale.AdmitRequest) []byte { return packAdmit(nil, &r) }
