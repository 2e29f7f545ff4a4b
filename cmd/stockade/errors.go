package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"stockade/biz/handler"
)

// codeView is one error code as -o json prints it.
type codeView struct {
	Code    string `json:"code"`
	Status  int    `json:"status"`
	Result  *int   `json:"result,omitempty"` // of verdicts on a purchase
	Title   string `json:"title"`
	Meaning string `json:"meaning"`
}

func (c *cli) errorsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "errors",
		Short:   "List the error codes of the APIs and what they mean",
		Example: "  stockade errors\n  stockade errors -o json",
		Args:    exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			r := result{header: []string{"CODE", "STATUS", "RESULT", "MEANING"}}
			for _, info := range handler.Codes() {
				v := codeView{Code: info.Name, Status: info.Status, Title: info.Title, Meaning: info.Meaning}
				number := "-"
				if info.Verdict {
					n := int(info.Result)
					v.Result, number = &n, strconv.Itoa(n)
				}
				r.add(v, v.Code, strconv.Itoa(v.Status), number, v.Meaning)
			}
			return c.print(r)
		},
	}
}
