package hosted_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/hosted"
)

// TestPageListsTheCatalogue compares the table of the page with the catalogue.
func TestPageListsTheCatalogue(t *testing.T) {
	page, err := os.ReadFile("../../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	entries := slices.Clone(hosted.Entries())
	slices.SortFunc(entries, func(a, b *hosted.Entry) int { return strings.Compare(a.ID, b.ID) })
	var b strings.Builder
	for _, e := range entries {
		switch {
		case e.ID == hosted.DeepSeekRoute:
		case e.NeedsURL:
			fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s |\n", e.ID, e.Name, e.KeyEnv, e.Unsupported)
		case e.Unsupported != "":
			fmt.Fprintf(&b, "| `%s` | %s | | not supported: %s |\n", e.ID, e.Name, e.Unsupported)
		default:
			fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s |\n", e.ID, e.Name, e.KeyEnv, strings.TrimPrefix(e.Address, "https://"))
		}
	}
	if !strings.Contains(string(page), "|---|---|---|---|\n"+b.String()+"\n") {
		t.Errorf("the table of docs/providers.md is not that of the installed catalogue, which is\n%s", b.String())
	}
}
