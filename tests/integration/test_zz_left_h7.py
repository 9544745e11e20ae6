import time, psutil
def test_left():
    for _ in range(12):
        found=[(c.pid,c.name(),round(time.time()-c.create_time(),1)) for c in psutil.Process().children() if "claude" in " ".join(c.cmdline())]
        print(found); 
        if not found: break
        time.sleep(1)
    assert not found
