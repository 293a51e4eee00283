// Command tinymodel writes tiny language models that say what a script tells
// them to. Real engines load them, so tests can meet real tokenizing, real
// windows, real streams and real errors, and still know the answer.
//
// The weights are computed, not learned. The transformer is a table: the last
// token picks the next one, and where a script goes several ways, the one layer
// of attention looks for the last marker in the context, such as [[call]] in a
// message or the end of a tool's result. A marker that an engine has cut away
// is no longer obeyed, which makes truncation visible.
//
// Scripts, chat templates and Modelfiles are in the folder data. The vocabulary
// is learned from a small text there, or taken from another GGUF file to have
// the token counts of a well-known tokenizer. The same input gives the same file.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "tinymodel:", err)
		}
		os.Exit(1)
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("tinymodel", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var (
		scriptPath = flags.String("script", "", "the script, a JSON `file`; the files it names are beside it")
		out        = flags.String("o", "", "the GGUF `file` to write")
		vocabPath  = flags.String("vocab", "", "take the vocabulary from this GGUF `file`")
		mmproj     = flags.String("mmproj", "", "also write a projector for images to this `file`")
	)
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *scriptPath == "" || *out == "" || flags.NArg() > 0 {
		flags.Usage()
		return errors.New("a script and an output are needed, and nothing else")
	}
	s, err := loadScript(*scriptPath)
	if err != nil {
		return err
	}
	beside := func(name string) (string, error) {
		if name == "" {
			return "", nil
		}
		b, err := os.ReadFile(filepath.Join(filepath.Dir(*scriptPath), name))
		return string(b), err
	}
	template, err := beside(s.Template)
	if err != nil {
		return err
	}
	var v *vocabulary
	if *vocabPath != "" {
		v, err = readVocabularyFile(*vocabPath)
	} else {
		var corpus string
		if corpus, err = beside(s.Corpus); err == nil {
			v = trainVocabulary(corpus, s.Merges)
		}
	}
	if err != nil {
		return err
	}
	p, err := newPlan(s, v)
	if err != nil {
		return err
	}
	w, err := compute(p)
	if err != nil {
		return err
	}
	if err := save(*out, language(p, w, template), stdout); err != nil {
		return err
	}
	if *mmproj == "" {
		return nil
	}
	m, err := projector(s.Name, w)
	if err != nil {
		return err
	}
	return save(*mmproj, m, stdout)
}

// save writes a model to a file, or leaves no file.
func save(path string, m *model, stdout io.Writer) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	err = errors.Join(m.write(f), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s: %d bytes\n", path, info.Size())
	return err
}
