# SPDX-License-Identifier: GPL-2.0
"""Tests of a page in a browser, a headless Chromium: page_in_browser.py INDEX.html

The page is one that `lab run --page` or `lab page` wrote. The tests need the package chromium.
"""
import json
import os
import sys
import tempfile
import unittest
from typing import Any

from browser import Browser
from support import raw_result, scenario
from timelylab import page
from timelylab.pagerun import Run
from timelylab.store import cells_dir, save_raw, save_summary

PAGE = ""
EVIL = '</script><script>alert(1)</script><img src=x onerror=alert(1)>"\'&'
# The contrast of a colour with the background: 1 to 21, by the formula of WCAG 2.
CONTRAST = """
const light = (text) => {
	const parts = text.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255).map(
		(part) => part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4);
	return .2126 * parts[0] + .7152 * parts[1] + .0722 * parts[2];
};
const contrast = (a, b) =>
	(Math.max(light(a), light(b)) + .05) / (Math.min(light(a), light(b)) + .05);
const back = getComputedStyle(document.body).backgroundColor;
const colour = (name) => {
	const probe = document.body.appendChild(document.createElement("i"));
	probe.className = name;
	const found = getComputedStyle(probe).color;
	probe.remove();
	return found;
};
"""
# A point of a line, in the window: its place, and the values that the line has there.
LINE_POINT = """(() => {
	const line = document.querySelectorAll("polyline[data-values]")[LINE];
	const chart = line.closest("svg");
	chart.scrollIntoView({ block: "center" });
	const places = line.getAttribute("points").split(" ");
	const i = Math.floor(places.length * 0.95);
	const [x, y] = places[i].split(",").map(Number);
	const at = new DOMPoint(x, y).matrixTransform(chart.getScreenCTM());
	return { x: at.x, y: at.y, name: line.parentNode.dataset.name,
		 values: line.dataset.values.split(" ")[i].split(",") };
})()"""
# The first point of a row of points: its place in the window.
ROW_POINT = """(() => {
	const marker = document.querySelector(".point .marker");
	marker.scrollIntoView({ block: "center" });
	const box = marker.getBoundingClientRect();
	return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
})()"""
TIP = """(() => {
	const tip = document.getElementById("tip");
	const box = tip.getBoundingClientRect();
	return tip.hidden ? null : { text: tip.textContent, inside: box.left >= 0 && box.top >= 0 &&
				     box.right <= innerWidth && box.bottom <= innerHeight };
})()"""


class Test(unittest.TestCase):
    """Tests that share a browser"""

    browser: Browser

    @classmethod
    def setUpClass(cls) -> None:
        cls.browser = cls.enterClassContext(Browser())

    def setUp(self) -> None:
        self.browser.call("Emulation.setEmulatedMedia", media="", features=[])
        self.browser.call("Emulation.clearDeviceMetricsOverride")
        self.browser.call("Emulation.setScriptExecutionDisabled", value=False)

    def problems(self) -> list[Any]:
        """Errors and dialogs of the page, and all requests but that for the page itself."""
        self.browser.value("1")
        found: list[Any] = []
        for event in self.browser.events:
            method, params = event.get("method"), event.get("params", {})
            if method in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled",
                          "Page.javascriptDialogOpening"):
                found.append(params)
            elif method == "Network.requestWillBeSent" and params["type"] != "Document":
                found.append(params["request"]["url"])
        return found


class Demo(Test):
    """The page of the command line"""

    def setUp(self) -> None:
        super().setUp()
        self.browser.open(PAGE)

    def tearDown(self) -> None:
        self.assertEqual(self.problems(), [])

    def point_at(self, where: dict[str, Any]) -> Any:
        """Move the pointer to a place in the window; the result is the text shown there."""
        self.browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=where["x"], y=where["y"])
        return self.browser.value(TIP)

    def test_results(self) -> None:
        """The page has runs with figures of this project and of peers, and charts."""
        sections = self.browser.value("document.querySelectorAll('section').length")
        self.assertGreaterEqual(sections, 2)
        seeds = self.browser.value("""Array.from(
            document.querySelectorAll("section > .scroll:first-of-type tbody td:nth-child(3)"),
            (cell) => cell.textContent)""")
        done = sum(int(text) for text in seeds)
        self.assertEqual(self.browser.value("document.querySelector('.state').textContent"),
                         f"{done} of {done} cells have finished.")
        for part in ("tbody tr.bold", "tbody tr:not(.bold)", "figure polyline", ".point", "pre"):
            self.assertTrue(self.browser.value(f"!!document.querySelector('{part}')"), part)

    def test_pointer(self) -> None:
        """The pointer shows the values of the nearest point, and leaves nothing behind."""
        for line in (0, 1):
            where = self.browser.value(LINE_POINT.replace("LINE", str(line)))
            shown = self.point_at(where)
            self.assertTrue(shown["inside"])
            for part in (where["name"], *where["values"]):
                self.assertIn(part, shown["text"])
        shown = self.point_at(self.browser.value(ROW_POINT))
        self.assertRegex(shown["text"], r"^[a-z_]+: [0-9.]+")
        self.assertIsNone(self.point_at({"x": 1, "y": 1}))
        self.assertEqual(self.browser.value("document.querySelectorAll('.dim').length"), 0)

    def test_without_script(self) -> None:
        """Without the script the page shows the same, and points have titles."""
        what = ("[document.querySelector('main').innerText, "
                "document.querySelectorAll('.point').length]")
        before = self.browser.value(what)
        self.browser.call("Emulation.setScriptExecutionDisabled", value=True)
        self.browser.open(PAGE)
        self.assertEqual(self.browser.value(what), before)
        self.assertEqual(
            self.browser.value("document.querySelectorAll('.point > title').length"), before[1])

    def test_colours(self) -> None:
        """Text and lines can be seen on light and dark screens; paper is light."""
        backs = []
        for media, scheme in (("screen", "light"), ("screen", "dark"), ("print", "dark")):
            self.browser.call("Emulation.setEmulatedMedia", media=media, features=[
                {"name": "prefers-color-scheme", "value": scheme}])
            got = self.browser.value("(() => {" + CONTRAST + """
                return [back, contrast(getComputedStyle(document.body).color, back), ...Array.from(
                    { length: 10 }, (_, i) => contrast(colour("s" + i), back))] })()""")
            backs.append(got[0])
            self.assertGreaterEqual(got[1], 7)
            self.assertGreaterEqual(min(got[2:]), 3, (media, scheme))
        self.assertNotEqual(backs[0], backs[1])
        self.assertEqual(backs[0], backs[2])

    def test_paper(self) -> None:
        """On paper no table is cut off, and the text at the pointer is not there."""
        self.browser.call("Emulation.setDeviceMetricsOverride", width=718, height=1047,
                          deviceScaleFactor=1, mobile=False)
        self.browser.call("Emulation.setEmulatedMedia", media="print")
        self.assertLessEqual(self.browser.value("document.documentElement.scrollWidth"), 718)
        self.assertEqual(self.browser.value("""(() => {
            const tip = document.getElementById("tip");
            tip.hidden = false;
            return tip.offsetWidth })()"""), 0)
        pdf = self.browser.call("Page.printToPDF", transferMode="ReturnAsStream")
        self.assertTrue(pdf["stream"])

    def test_telephone(self) -> None:
        """On a narrow window the page does not scroll sideways."""
        self.browser.call("Emulation.setDeviceMetricsOverride", width=360, height=700,
                          deviceScaleFactor=1, mobile=True)
        self.assertLessEqual(self.browser.value("document.documentElement.scrollWidth"), 360)


class Made(Test):
    """Pages of results that these tests make"""

    def test_hostile(self) -> None:
        """Texts of result files run no script and load nothing."""
        with tempfile.TemporaryDirectory() as out:
            os.mkdir(cells_dir(out))
            own, name = scenario(), EVIL.replace("/", "")
            own["title"] = EVIL
            for cc in ("timely", name):
                save_raw(out, raw_result() | {"cc": cc})
            save_summary(out, "test", own, "base", 1, [(EVIL, 1, EVIL)],
                         [{"cc": cc, "seed": 1, "goodput_gbit": 9} for cc in ("timely", name)])
            path = os.path.join(out, "index.html")
            page.write_page(path, [page.load_run(out)])
            self.browser.open(path)
            self.assertEqual(self.browser.value("document.querySelector('h2').textContent"), EVIL)
            self.assertEqual(self.problems(), [])

    def test_reload(self) -> None:
        """A browser that shows a run under way shows the next state without being told to."""
        with tempfile.TemporaryDirectory() as out:
            path = os.path.join(out, "index.html")
            run = Run(out, scenario(), waiting=[("timely", 1)], running=True)
            page.write_page(path, [run])
            self.browser.open(path)
            state = "document.querySelector('.state').textContent"
            self.assertIn("0 of 1 cells have finished. The others", self.browser.value(state))
            run.running, run.ended = False, "The run was interrupted"
            page.write_page(path, [run])
            self.browser.wait("Page.loadEventFired")
            self.assertEqual(self.browser.value(state), "0 of 1 cells have finished, "
                             "1 did not run. The run was interrupted.")


if __name__ == "__main__":
    if len(sys.argv) < 2 or not os.path.isfile(sys.argv[1]):
        sys.exit("usage: page_in_browser.py INDEX.html")
    PAGE = sys.argv.pop(1)
    unittest.main()
