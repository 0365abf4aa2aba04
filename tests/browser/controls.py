"""Every control of a page's form, found from the DOM, by keyboard and by mouse."""

# Finds controls, and names each the same way before and after the page changes.
FIND = """
  const keyOf = (control) => [control.tagName, control.type, control.name, control.dataset.rank,
    control.type === 'submit' || control.type === 'button' ? control.textContent : '',
    ['checkbox', 'radio'].includes(control.type) ? control.value : ''].filter(Boolean).join(' ');
  const usable = () => [...document.querySelectorAll('#controls :is(input, select, button)')]
    .filter((control) => control.checkVisibility() && !control.disabled && control.type !== 'hidden');
  // What the tests need to know of one.
  const about = (control) => {
    const options = [...(control.options ?? [])].filter((option) => !option.disabled);
    const place = options.findIndex((option) => option.selected);
    return {key: keyOf(control), type: control.type, checked: control.checked,
      sets: 'rank' in control.dataset || 'set' in control.dataset,
      group: control.closest('fieldset').querySelector('legend').textContent,
      radios: usable().filter((other) => other.type === 'radio' && other.name === control.name).length,
      options: options.map((option) => option.value), place,
      share: (control.value - control.min) / (control.max - control.min)};
  };
"""


def keys(page):
    return set(page.evaluate(f"() => {{{FIND} return usable().map(keyOf);}}"))


def address_after(page, act):
    """The address once `act` has changed it; the same as before if it has not."""
    before = page.url
    act()
    for _ in range(30):
        page.wait_for_timeout(50)
        if page.url != before:
            break
    page.wait_for_timeout(50)
    return page.url


class Walk:
    def __init__(self, test, page):
        self.test, self.page = test, page
        self.set_to = {}  # addresses by what buttons choose among

    def change(self, control, act):
        before = self.page.url
        self.test.assertNotEqual(address_after(self.page, act), before, control)

    def press(self, control, act):
        """A button may choose what is chosen already, but no two choose the same."""
        if control["sets"]:
            self.set_to.setdefault(control["group"], []).append(address_after(self.page, act))

    def end(self):
        for group, addresses in self.set_to.items():
            self.test.assertEqual(len(set(addresses)), len(addresses), group)


def by_keyboard(test, page):
    """From control to control by Tab; arrows, space and Enter change each."""
    walk = Walk(test, page)
    focused = f"""() => {{{FIND} const control = document.activeElement;
        return control.closest('#controls') && about(control);}}"""
    page.evaluate("document.querySelector('nav a:last-child').focus()")
    reached = set()
    while True:
        page.keyboard.press("Tab")
        control = page.evaluate(focused)
        if control is None:
            break
        test.assertNotIn(control["key"], reached)
        reached.add(control["key"])
        if control["type"] == "button":
            walk.press(control, lambda: page.keyboard.press("Enter"))
        elif control["type"] == "radio":
            for _ in range(control["radios"]):
                walk.change(control, lambda: page.keyboard.press("ArrowRight"))
                reached.add(page.evaluate(focused)["key"])
        elif control["type"] == "select-one":
            key = "ArrowUp" if control["place"] == len(control["options"]) - 1 else "ArrowDown"
            if len(control["options"]) > 1:
                walk.change(control, lambda: page.keyboard.press(key))
        else:
            key = {"checkbox": "Space", "number": "ArrowUp",
                   "range": "ArrowLeft" if control["share"] == 1 else "ArrowRight"}[control["type"]]
            walk.change(control, lambda: page.keyboard.press(key))
    test.assertEqual(keys(page) - reached, set())
    walk.end()


def by_mouse(test, page):
    """A click on each. A browser's list of options is beyond a page's reach: those are set."""
    walk = Walk(test, page)
    # What may hide or disable another comes after it.
    kinds = ("INPUT", "SELECT", "BUTTON")
    todo = sorted(keys(page), key=lambda key: (" radio " in key, kinds.index(key.split()[0]), key))
    while todo:
        left = []
        for key in todo:
            found = page.evaluate_handle(
                f"(key) => {{{FIND} return usable().find((control) => keyOf(control) === key);}}", key)
            element = found.as_element()
            test.assertIsNotNone(element, key)
            control = element.evaluate(f"(control) => {{{FIND} return about(control);}}")
            if control["type"] == "radio" and control["checked"]:
                left.append(key)
            elif control["type"] == "button":
                walk.press(control, element.click)
            elif control["type"] == "select-one":
                others = [i for i in range(len(control["options"])) if i != control["place"]]
                if others:
                    value = control["options"][others[0]]
                    walk.change(control, lambda: element.select_option(value))
            else:
                box = element.bounding_box()
                place = {"x": box["width"] / 2, "y": box["height"] / 2}
                if control["type"] == "range":
                    place["x"] = box["width"] * (0.2 if control["share"] > 0.5 else 0.8)
                elif control["type"] == "number":  # the upper of two arrows
                    element.hover()
                    place = {"x": box["width"] - 16, "y": box["height"] / 3}
                walk.change(control, lambda: element.click(position=place))
        todo = left if len(left) < len(todo) else []
    walk.end()
