"""What the demo model understands, in the order in which it is asked: the first intent that knows the prompt answers it."""

from __future__ import annotations

from sandbox_chat.demo.intents import (
    basics,
    charts,
    files,
    followups,
    numbers,
    pictures,
    python,
    tables,
    tools,
    tour,
    trouble,
)
from sandbox_chat.demo.steps import Intent

INTENTS: tuple[Intent, ...] = (
    basics.summary,
    python.other_language,
    python.user_code,
    trouble.mistake,
    tour.tour,
    trouble.sleep,
    trouble.slow,
    files.download,
    files.notes,
    followups.zero_crossings,
    followups.variables,
    followups.plot_names,
    followups.describe,
    numbers.gauss,
    numbers.primes,
    numbers.fibonacci,
    numbers.pi,
    numbers.matrix,
    charts.damped_sine,
    pictures.recipe,
    charts.formula,
    tables.sales,
    tools.clock,
    tools.listing,
    files.listing,
    followups.inspect,
    followups.plot_it,
    basics.hello,
    basics.thanks,
    basics.who,
    basics.help_,
)
"""Code that the user typed comes first, then what is named in so many words, then follow-ups and small talk."""
