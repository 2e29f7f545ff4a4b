package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// problem is what the service answers when it refuses, after RFC 9457.
type problem struct {
	Title     string `json:"title"`
	Detail    string `json:"detail"`
	Code      string `json:"code"`
	Reason    string `json:"reason"`
	Field     string `json:"field"`
	RequestID string `json:"request_id"`
}

// problemError turns a refusal into one line: code, reason, field, what is wrong, and the request id for faults of
// the service.
func problemError(status int, body []byte) error {
	var p problem
	if json.Unmarshal(body, &p) != nil || p.Code == "" {
		return fail(exitFor(status), fmt.Errorf("HTTP %d %s", status, http.StatusText(status)))
	}
	parts := []string{p.Code}
	if p.Reason != "" {
		parts[0] += " (" + p.Reason + ")"
	}
	for _, part := range []string{p.Field, firstOf(p.Detail, p.Title)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	line := oneLine(strings.Join(parts, ": "))
	if status >= http.StatusInternalServerError && p.RequestID != "" {
		line += " (request " + oneLine(p.RequestID) + ")"
	}
	return fail(exitFor(status), fmt.Errorf("%s", line))
}

// exitFor maps HTTP statuses to ours.
func exitFor(status int) int {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return exitData
	case http.StatusUnauthorized, http.StatusForbidden:
		return exitDenied
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return exitTemporary
	}
	if status >= http.StatusInternalServerError {
		return exitUnavailable
	}
	return exitRefused
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// oneLine keeps an answer from writing several lines, or control sequences, to a terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
