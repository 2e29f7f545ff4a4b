-- By the index that begins with the SKU: in the order of seq each page would read past the rows of all other SKUs.
SELECT seq FROM outbox FORCE INDEX (outbox_buyer) WHERE sku = ? LIMIT ? FOR UPDATE
