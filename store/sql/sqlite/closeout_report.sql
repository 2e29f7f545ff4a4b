SELECT report FROM closeout WHERE sku = ?
