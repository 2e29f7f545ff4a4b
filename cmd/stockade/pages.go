package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

const (
	pageLimit = 200     // the most that one page of a list holds
	maxListed = 100_000 // rows that one list command holds in memory
)

func pageFlags(cmd *cobra.Command, after *string, limit *int) {
	cmd.Flags().StringVar(after, "after", "", "start behind this id")
	cmd.Flags().IntVar(limit, "limit", 0, fmt.Sprintf("print at most so many, 1 to %d (default: all)", maxListed))
}

// pages follows a list from page to page. member names the list in an answer.
func (cl *client) pages(ctx context.Context, path, member, after string, limit int, header ...string) ([]json.RawMessage, error) {
	if limit < 0 || limit > maxListed {
		return nil, fail(exitUsage, fmt.Errorf("--limit: must be from 1 to %d", maxListed))
	}
	if limit == 0 {
		limit = maxListed
	}
	var rows []json.RawMessage
	for {
		query := url.Values{"limit": {strconv.Itoa(min(pageLimit, limit-len(rows)))}}
		if after != "" {
			query.Set("after", after)
		}
		join := "?"
		if strings.Contains(path, "?") {
			join = "&"
		}
		raw, err := cl.call(ctx, http.MethodGet, path+join+query.Encode(), nil, header...)
		if err != nil {
			return nil, err
		}
		var page map[string]json.RawMessage
		var list []json.RawMessage
		var next string
		if json.Unmarshal(raw, &page) != nil || json.Unmarshal(page[member], &list) != nil {
			return nil, notWhat("a list of " + member)
		}
		if page["next"] != nil && json.Unmarshal(page["next"], &next) != nil {
			return nil, notWhat("a list of " + member)
		}
		rows = append(rows, list...)
		switch {
		case len(rows) >= limit:
			return rows[:limit], nil
		case next == "":
			return rows, nil
		case next == after || len(list) == 0: // would go round in circles
			return nil, notWhat("a page that ends")
		}
		after = next
	}
}
