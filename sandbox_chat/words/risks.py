"""What the servers of the MCP catalogue can do to a machine, by their names. The English texts are those of the catalogue."""

from __future__ import annotations

EN = {
    "filesystem": "It can read, overwrite and move every file in the folders that you name.",
    "git": "It can commit, reset what is staged and switch branches, which can lose changes that are not committed.",
    "memory": "What one chat puts into it, also what came from a web page, is read as fact by every later chat.",
    "fetch": "It reaches the network from this machine, and an address can carry data out; pages can hold text that misleads the model. It refuses addresses of this machine and its own network unless allow_private is on.",
    "everything": "It can show the model the variables of its own environment, and compress what an address names.",
    "time": "None that is known: it only reads the clock.",
    "sequential-thinking": "None that is known: it only counts the thoughts that it is given.",
    "sqlite": "It can change and drop every table of the database.",
    "postgres": "Its query tool is said to be read-only but can write: a query that begins with COMMIT leaves the read-only transaction. Give it a database user that may only read.",
    "postgres-mcp": "It reads the whole database that its user may read; with access=unrestricted it can change and drop all of it. Its errors do not say that they are errors.",
    "redis": "It can overwrite and delete every key; listing keys of a large Redis server blocks that server.",
    "mongodb": "It reads the whole database that its user may read; with read_only=false it can change and drop all of it.",
    "greptimedb": "It reads all tables that its user may read, and can make and delete pipelines and dashboards.",
    "semgrep": "It reads the code that it scans, and may tell its maker about the scan.",
    "puppeteer": "It opens any address, also files of this machine and servers that only this machine reaches, and the model can switch off the browser's own sandbox.",
    "sentry": "It reads what your token may read at Sentry; reports there can hold text that misleads the model.",
    "unstructured": "It can make, change and delete the workflows of your account, start jobs that cost money, and send documents out.",
    "mcp-installer": "It installs any package that the model names, and a program that is started with Claude Desktop: that is running foreign code with your rights.",
}

ZH = {
    "filesystem": "它能读取、覆盖和移动你指定的文件夹中的所有文件。",
    "git": "它能提交、重置已暂存的内容并切换分支，可能丢失尚未提交的更改。",
    "memory": "一次聊天存入的内容，包括来自网页的内容，之后的每次聊天都会当作事实读取。",
    "fetch": "它从本机访问网络，地址本身就能把数据带出；网页中可能含有误导模型的文字。除非启用 allow_private，否则它会拒绝本机及本机所在网络的地址。",
    "everything": "它能向模型展示自身环境中的变量，并压缩某个地址所指的内容。",
    "time": "没有已知风险：它只读取时钟。",
    "sequential-thinking": "没有已知风险：它只对收到的思考步骤计数。",
    "sqlite": "它能更改和删除数据库中的所有表。",
    "postgres": "它的查询工具号称只读，但其实可以写入：以 COMMIT 开头的查询会离开只读事务。请给它一个只能读取的数据库用户。",
    "postgres-mcp": "它能读取其用户可读的整个数据库；设为 access=unrestricted 时还能更改和删除全部内容。它的错误不会表明自己是错误。",
    "redis": "它能覆盖和删除所有键；列出大型 Redis 服务器的键会使该服务器阻塞。",
    "mongodb": "它能读取其用户可读的整个数据库；设为 read_only=false 时还能更改和删除全部内容。",
    "greptimedb": "它能读取其用户可读的所有表，并能创建和删除管道与仪表板。",
    "semgrep": "它会读取所扫描的代码，并可能把扫描情况告知其开发者。",
    "puppeteer": "它能打开任何地址，包括本机的文件和只有本机能访问的服务器，模型还能关闭浏览器自身的沙箱。",
    "sentry": "它能读取你的令牌在 Sentry 可读的内容；其中的报告可能含有误导模型的文字。",
    "unstructured": "它能创建、更改和删除你账户中的工作流，启动会产生费用的任务，并把文档发送出去。",
    "mcp-installer": "它会安装模型指定的任何软件包，以及随 Claude Desktop 启动的程序：这等于以你的权限运行他人的代码。",
}
