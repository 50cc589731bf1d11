package main

import (
	"flag"
	"fmt"

	"github.com/postrider/postrider/test/proof/peers/page"
	"github.com/postrider/postrider/test/proof/peers/result"
)

// table prints the tables, or writes them into a page, and draws the plots.
func table(args []string) error {
	flags := flag.NewFlagSet("table", flag.ContinueOnError)
	file := flags.String("page", "", "page whose generated part is written; none: it is printed")
	plots := flags.String("plots", "", "folder that the plots are written to; none: they are not drawn")
	link := flags.String("link", "comparison", "what the page calls that folder")
	if err := flags.Parse(args); err != nil {
		return err
	}
	run, err := result.Read(flags.Args()...)
	if err != nil {
		return err
	}
	if *plots != "" {
		if err := page.Draw(run, *plots); err != nil {
			return err
		}
	}
	text := page.Text(run, *link)
	if *file == "" {
		fmt.Print(text)
		return nil
	}
	return page.Fill(*file, text)
}
