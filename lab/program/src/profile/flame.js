/* SPDX-License-Identifier: Apache-2.0 */
/* Search and zoom for flame graphs: on a page, or in a picture by itself. Without it they are still read. */
(function () {
  "use strict";
  var LETTER = 6.7, SVG = "http://www.w3.org/2000/svg", graphs = [];

  function number(element, name) { return parseFloat(element.getAttribute(name)); }

  function frames(svg) {
    var found = [];
    svg.querySelectorAll("g").forEach(function (g) {
      var rect = g.querySelector("rect"), title = g.querySelector("title");
      if (!rect || !title || g.parentNode.getAttribute("class") === "gone") { return; }
      found.push({
        g: g, rect: rect, text: g.querySelector("text"), name: title.textContent.split("\n")[0],
        x: number(rect, "x"), y: number(rect, "y"), width: number(rect, "width")
      });
    });
    return found;
  }

  function place(frame, x, width) {
    frame.rect.setAttribute("x", x.toFixed(1));
    frame.rect.setAttribute("width", Math.max(width, 0).toFixed(1));
    var room = Math.floor((width - 5) / LETTER), shown = "";
    if (room >= frame.name.length) { shown = frame.name; }
    else if (room > 2) { shown = frame.name.slice(0, room - 1) + "…"; }
    if (!frame.text && shown) {
      frame.text = document.createElementNS(SVG, "text");
      frame.text.setAttribute("y", frame.y + 12);
      frame.g.appendChild(frame.text);
    }
    if (frame.text) {
      frame.text.setAttribute("x", (x + 3).toFixed(1));
      frame.text.textContent = shown;
    }
  }

  function show(frame, visible, above) {
    frame.g.style.display = visible ? "" : "none";
    frame.g.classList.toggle("above", above);
  }

  function zoom(graph, into) {
    var slack = 0.3;
    graph.frames.forEach(function (frame) {
      if (!into) { show(frame, true, false); place(frame, frame.x, frame.width); return; }
      var holds = frame.x <= into.x + slack && frame.x + frame.width >= into.x + into.width - slack;
      var inside = frame.x >= into.x - slack && frame.x + frame.width <= into.x + into.width + slack;
      var scale = graph.width / into.width;
      if (frame.y > into.y && holds) {
        show(frame, true, true);
        place(frame, 0, graph.width);
      } else if (frame.y <= into.y && inside) {
        show(frame, true, false);
        place(frame, (frame.x - into.x) * scale, frame.width * scale);
      } else {
        show(frame, false, false);
      }
    });
    graph.reset.style.display = into ? "" : "none";
  }

  /* The share of the picture's width that frames with these words cover, one above the other counted once. */
  function search(graph, words) {
    var low = words.toLowerCase(), hits = [], covered = 0, end = -1;
    graph.frames.forEach(function (frame) {
      var hit = low !== "" && frame.name.toLowerCase().indexOf(low) >= 0;
      frame.g.classList.toggle("hit", hit);
      if (hit) { hits.push(frame); }
    });
    hits.sort(function (one, other) { return one.x - other.x || other.width - one.width; });
    hits.forEach(function (frame) {
      var right = frame.x + frame.width;
      if (right > end) { covered += right - Math.max(frame.x, end); end = right; }
    });
    graph.says.textContent =
      low === "" ? "" : "“" + words + "”: " + (100 * covered / graph.width).toFixed(1) + " %";
  }

  function button(svg, x, words, act) {
    var text = document.createElementNS(SVG, "text");
    text.setAttribute("class", "b");
    text.setAttribute("x", x);
    text.setAttribute("y", 16);
    text.setAttribute("text-anchor", "end");
    text.setAttribute("role", "button");
    text.setAttribute("tabindex", "0");
    text.textContent = words;
    text.addEventListener("click", act);
    text.addEventListener("keydown", function (event) { if (event.key === "Enter") { act(); } });
    svg.appendChild(text);
    return text;
  }

  function start(svg) {
    var graph = { frames: frames(svg), width: svg.viewBox.baseVal.width };
    var right = graph.width - 4;
    button(svg, right, "search", function () {
      var words = window.prompt("Frames whose name has this in it:", "");
      if (words !== null) { search(graph, words); }
    });
    graph.reset = button(svg, right - 60, "whole graph", function () { zoom(graph, null); });
    graph.says = button(svg, right - 160, "", function () { search(graph, ""); });
    graph.reset.style.display = "none";
    graph.frames.forEach(function (frame) {
      frame.g.addEventListener("click", function () { zoom(graph, frame); });
    });
    graphs.push(graph);
  }

  function everywhere(act) { graphs.forEach(act); }

  function begin() {
    document.querySelectorAll("svg.flame").forEach(start);
    var field = document.getElementById("flame-search");
    document.addEventListener("keydown", function (event) {
      if (event.key === "Escape") {
        if (field) { field.value = ""; }
        everywhere(function (graph) { zoom(graph, null); search(graph, ""); });
      }
    });
    if (field) {
      field.addEventListener("input", function () {
        everywhere(function (graph) { search(graph, field.value); });
      });
    }
  }

  if (document.readyState === "loading") { document.addEventListener("DOMContentLoaded", begin); }
  else { begin(); }
}());
