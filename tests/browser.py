"""A browser without a window, for tests of pages."""

import shutil

from selenium import webdriver


def start(width: int = 1280, height: int = 1130) -> webdriver.Chrome:
    programs = [shutil.which("chromium"), shutil.which("chromedriver")]
    assert all(programs), (
        "chromium is missing; try  scripts/setup_packages.sh --tests, or apt-get install chromium chromium-driver"
    )
    options = webdriver.ChromeOptions()
    options.binary_location = programs[0]
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--window-size={width},{height}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(programs[1]))


def look(driver, *, dark: bool = False, width: int = 1280, height: int = 1130) -> None:
    """As on such a screen, for the page that is opened next."""
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
    screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
