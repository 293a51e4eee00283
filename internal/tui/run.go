package tui

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"
)

// framesPerSecond bounds how often the screen is drawn, and how often what
// happens in a turn is taken in.
const framesPerSecond = 30

// Run shows the UI until the person leaves, or ctx ends.
func Run(ctx context.Context, opts *Options) (Ended, error) {
	life, stop := context.WithCancel(ctx)
	defer stop()
	d := newDesk(opts)
	s := newScreen(life, d)
	p := tea.NewProgram(s,
		tea.WithContext(ctx), tea.WithInput(opts.In), tea.WithOutput(opts.Out), tea.WithEnvironment(opts.Environ),
		tea.WithFPS(framesPerSecond), tea.WithoutSignalHandler(),
	)
	pumped := make(chan struct{})
	go func() {
		defer close(pumped)
		pump(d, func(b batch) { p.Send(b) })
	}()
	_, err := p.Run()
	stop()
	ended := d.ended()
	// The turn that may still run ends now; its last events go nowhere.
	err = errors.Join(s.failed, leftBy(ctx, err), d.close())
	close(d.over)
	<-pumped
	return ended, err
}

// leftBy is the error of a program that did not end as the person wanted.
func leftBy(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// pump hands on what happens in a turn, at most framesPerSecond times a second,
// until the desk is over.
func pump(d *desk, show func(batch)) {
	const interval = time.Second / framesPerSecond
	last := time.Time{}
	for {
		var list batch
		select {
		case ev := <-d.events:
			list = batch{ev}
		case <-d.over:
			return
		}
		timer := time.NewTimer(interval - time.Since(last))
		for waiting := true; waiting; {
			select {
			case ev := <-d.events:
				list = append(list, ev)
			case <-timer.C:
				waiting = false
			case <-d.over:
				waiting = false
			}
		}
		timer.Stop()
		last = time.Now()
		show(list)
	}
}
