// SPDX-License-Identifier: GPL-2.0
// Show the values of the point that is nearest to the pointer. The page is complete without this
// script: then browsers show the titles of single points.
"use strict";

const tip = document.createElement("div");
tip.id = "tip";
tip.hidden = true;
document.body.append(tip);

// The points of a chart: where they are, the series that they belong to, and the text to show.
function pointsOf(chart) {
	const points = [];
	for (const line of chart.querySelectorAll("polyline[data-values]")) {
		const series = line.parentNode;
		const places = line.getAttribute("points").split(" ").filter(Boolean);
		const values = line.dataset.values.split(" ");
		places.forEach((place, i) => {
			const [x, y] = place.split(",").map(Number);
			const [a, b] = values[i].split(",");
			const text = `${series.dataset.name}: ${chart.dataset.x} ${a}; ${chart.dataset.y} ${b}`;
			points.push({ x, y, series, text });
		});
	}
	for (const point of chart.querySelectorAll(".point")) {
		const place = point.querySelector(".marker").transform.baseVal.consolidate().matrix;
		const title = point.querySelector("title");
		points.push({ x: place.e, y: place.f, series: point.parentNode, text: title.textContent });
		title.remove();
	}
	return points;
}

for (const chart of document.querySelectorAll("figure > svg")) {
	const points = pointsOf(chart);
	const show = (event) => {
		const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(
			chart.getScreenCTM().inverse());
		const distance = (point) => Math.hypot(point.x - at.x, point.y - at.y);
		let best = null;
		for (const point of points)
			if (!best || distance(point) < distance(best))
				best = point;
		if (!best || distance(best) > 60)
			return hide();
		tip.textContent = best.text;
		tip.hidden = false;
		const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 4);
		tip.style.left = `${Math.max(0, left)}px`;
		tip.style.top = `${Math.max(0, event.clientY - tip.offsetHeight - 10)}px`;
		for (const series of chart.querySelectorAll(".series"))
			series.classList.toggle("dim", series !== best.series);
	};
	const hide = () => {
		tip.hidden = true;
		for (const series of chart.querySelectorAll(".series"))
			series.classList.remove("dim");
	};
	chart.addEventListener("pointermove", show);
	chart.addEventListener("pointerdown", show);
	chart.addEventListener("pointerleave", hide);
}
