"""Cases: pictures, tables and other displays."""

from __future__ import annotations

import io

from conformance.registry import Ground, case

from sandbox_chat.sandbox.base import Execution


def pngs(done: Execution) -> list[bytes]:
    """The PNG pictures of a run, each checked to be one."""
    from PIL import Image

    found = [data for output in done.outputs if isinstance(data := output.data.get("image/png"), bytes)]
    for data in found:
        with Image.open(io.BytesIO(data)) as picture:
            picture.load()
            assert picture.width > 20 < picture.height
    return found


@case("Pictures", fast=True)
async def a_figure_without_savefig(ground: Ground) -> None:
    """A matplotlib figure comes as a PNG without `savefig` and without `show`."""
    done = await ground.run("import matplotlib.pyplot as plt\nplt.plot([1, 3, 2]);")
    assert done.ok, done.error
    assert len(pngs(done)) == 1


@case("Pictures")
async def several_figures(ground: Ground) -> None:
    """Several figures come as several pictures, in their order."""
    code = (
        "import matplotlib.pyplot as plt\n"
        "for width in (2, 4, 6):\n    plt.figure(figsize=(width, 2)); plt.plot([1, 2]); plt.show()\nprint('done')"
    )
    done = await ground.run(code)
    assert done.stdout == "done\n"
    from PIL import Image

    widths = [Image.open(io.BytesIO(data)).width for data in pngs(done)]
    assert len(widths) == 3
    assert widths == sorted(widths), widths
    done = await ground.run("plt.figure(); plt.plot([1]); plt.figure(); plt.plot([2]);")
    assert len(pngs(done)) == 2


@case("Pictures")
async def the_figure_of_a_failed_run(ground: Ground) -> None:
    """A figure that was begun before the code failed is shown with the error."""
    done = await ground.run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\n1/0")
    assert done.error is not None
    assert len(pngs(done)) == 1
    assert (await ground.run("1 + 1")).outputs[0].data["text/plain"] == "2"


@case("Pictures")
async def a_saved_and_closed_figure(ground: Ground) -> None:
    """A figure that was saved and closed is a file, and not shown beside."""
    done = await ground.run(
        "import matplotlib.pyplot as plt\nplt.figure(); plt.plot([1]); plt.savefig('chart.png'); plt.close()"
    )
    assert done.ok
    assert pngs(done) == []
    assert (await ground.worker.read_file("chart.png", max_bytes=1_000_000)).startswith(b"\x89PNG")


@case("Pictures")
async def no_figure_comes_twice(ground: Ground) -> None:
    """A figure is shown once: the run after has none."""
    await ground.run("import matplotlib.pyplot as plt\nplt.plot([1, 2]);")
    assert (await ground.run("2")).outputs[0].data == {"text/plain": "2"}


@case("Pictures")
async def a_first_figure_is_quiet(ground: Ground) -> None:
    """The first figure says nothing of fonts or caches on standard error."""
    with ground.another() as worker:
        done = await worker.run_code(
            "import matplotlib.pyplot as plt\nplt.title('Größe µ ≤ √2'); plt.plot([1]);", timeout=60
        )
    assert (done.stdout, done.stderr) == ("", ""), done
    assert len(pngs(done)) == 1


@case("Pictures")
async def pil_images(ground: Ground) -> None:
    """A PIL image that is displayed comes as a PNG, byte for byte decodable."""
    done = await ground.run(
        "from PIL import Image\nfrom IPython.display import display\nimage = Image.new('RGB', (40, 30), 'red')\n"
        "display(image)"
    )
    assert done.ok, done.error
    [data] = pngs(done)
    from PIL import Image

    with Image.open(io.BytesIO(data)) as picture:
        assert picture.size == (40, 30)
        assert picture.convert("RGB").getpixel((5, 5)) == (255, 0, 0)


@case("Pictures")
async def a_picture_of_a_megabyte(ground: Ground) -> None:
    """A picture of more than a megabyte comes whole."""
    code = (
        "import numpy as np\nfrom PIL import Image\nfrom IPython.display import display\n"
        "display(Image.fromarray(np.random.default_rng(1).integers(0, 256, (700, 700, 3), dtype=np.uint8)))"
    )
    [data] = pngs(await ground.run(code))
    assert len(data) > 1_000_000


@case("Pictures", fast=True)
async def tables(ground: Ground) -> None:
    """A DataFrame comes as text and as HTML."""
    done = await ground.run("import pandas as pd\npd.DataFrame({'name': ['a', 'b'], 'n': [1, 2]})")
    [output] = done.outputs
    assert output.is_result
    assert "name" in str(output.data["text/plain"])
    assert "<table" in str(output.data["text/html"])


@case("Pictures", fast=True)
async def a_page_of_megabytes(ground: Ground) -> None:
    """An HTML display of five megabytes, as plots with their library are, comes whole."""
    done = await ground.run(
        "from IPython.display import display, HTML\ndisplay(HTML('<p>' + 'é< ' * 1_200_000 + '</p>'))"
    )
    assert done.ok, done.error
    [output] = done.outputs
    assert output.data["text/html"] == "<p>" + "é< " * 1_200_000 + "</p>"
    assert await ground.result("1 + 1") == "2"


@case("Pictures")
async def displays_of_all_kinds(ground: Ground) -> None:
    """Displays of HTML, Markdown, LaTeX, SVG and JSON come as such, in their order, before the result."""
    code = (
        "from IPython.display import display, HTML, Markdown, Latex, SVG, JSON\ndisplay(HTML('<b>h</b>'))\n"
        "display(Markdown('**m**'))\ndisplay(Latex('$l^2$'))\n"
        "display(SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>'))\ndisplay(JSON({'j': [1, 2]}))\n'last'"
    )
    done = await ground.run(code)
    assert done.ok, done.error
    kinds = ["text/html", "text/markdown", "text/latex", "image/svg+xml", "application/json"]
    assert len(done.outputs) == 6, done.outputs
    for kind, output in zip(kinds, done.outputs, strict=False):
        assert kind in output.data, (kind, output)
        assert not output.is_result
    assert done.outputs[0].data["text/html"] == "<b>h</b>"
    assert done.outputs[1].data["text/markdown"] == "**m**"
    assert '"j"' in str(done.outputs[4].data["application/json"]).replace("'", '"')
    assert done.outputs[5].is_result
    assert done.result_text == "'last'"


@case("Pictures")
async def a_failing_display(ground: Ground) -> None:
    """An object whose HTML form fails is still shown as text, and breaks nothing."""
    done = await ground.run(
        "class Half:\n    def __repr__(self): return 'half'\n    def _repr_html_(self): raise ValueError('no html')\nHalf()"
    )
    assert done.result_text == "half"
    assert await ground.result("1 + 1") == "2"


@case("Pictures")
async def thousands_of_displays(ground: Ground) -> None:
    """Thousands of displays in one run are bounded, and what was left out is said."""
    done = await ground.run("from IPython.display import display\nfor n in range(2000): display(n)")
    assert done.ok, done.error
    assert 100 <= len(done.outputs) <= 500
    assert "not kept" in done.stderr
    assert await ground.result("1 + 1") == "2"
